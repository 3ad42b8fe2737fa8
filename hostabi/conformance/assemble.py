"""Makes a module of each case: the text of its .wat with the parts that it includes, between (module and ).

    python assemble.py          writes NAME.wasm beside every NAME.wat
    python assemble.py --check  fails where one is stale

It needs the package wasmtime, which has the assembler of the Bytecode Alliance.
"""

import pathlib
import re
import sys

import wasmtime

HERE = pathlib.Path(__file__).parent
INCLUDE = re.compile(r"^;; include (\w+)$", re.MULTILINE)


def text(path: pathlib.Path) -> str:
    """The text of a file with its parts in place."""
    return INCLUDE.sub(lambda m: text(HERE / "parts" / f"{m[1]}.wat"), path.read_text())


def main() -> None:
    check = "--check" in sys.argv[1:]
    stale = []
    for source in sorted(HERE.glob("*.wat")):
        try:
            module = bytes(wasmtime.wat2wasm(f"(module\n{text(source)})"))
        except wasmtime.WasmtimeError as e:
            sys.exit(f"{source.name}: {e}")
        target = source.with_suffix(".wasm")
        if check and (not target.exists() or target.read_bytes() != module):
            stale.append(target.name)
        if not check:
            target.write_bytes(module)
    if stale:
        sys.exit(f"stale: {' '.join(stale)}; run python {pathlib.Path(__file__).name}")


if __name__ == "__main__":
    main()
