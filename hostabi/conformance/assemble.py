"""Makes a module of each case, of environments here and of components in component/: the text of its .wat with the parts that it
includes, between (module and ). Beside them assembled.txt has the SHA-256 of each text and of its module, by which a test
without an assembler finds stale ones.

    python assemble.py

It needs the package wasmtime, which has the assembler of the Bytecode Alliance.
"""

import hashlib
import pathlib
import re
import sys

import wasmtime

HERE = pathlib.Path(__file__).parent
INCLUDE = re.compile(r"^;; include (\w+)$", re.MULTILINE)


def text(path: pathlib.Path) -> str:
    """The text of a file with its parts in place."""
    parts = path.parent if path.parent.name == "parts" else path.parent / "parts"
    return INCLUDE.sub(lambda m: text(parts / f"{m[1]}.wat"), path.read_text())


def assemble(folder: pathlib.Path) -> None:
    """Makes the modules of a folder."""
    record = ""
    for source in sorted(folder.glob("*.wat")):
        try:
            module = bytes(wasmtime.wat2wasm(f"(module\n{text(source)})"))
        except wasmtime.WasmtimeError as e:
            sys.exit(f"{source.name}: {e}")
        source.with_suffix(".wasm").write_bytes(module)
        record += f"{source.stem} {hashlib.sha256(text(source).encode()).hexdigest()} {hashlib.sha256(module).hexdigest()}\n"
    (folder / "assembled.txt").write_text(record)


def main() -> None:
    assemble(HERE)
    assemble(HERE / "component")


if __name__ == "__main__":
    main()
