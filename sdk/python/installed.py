#!/usr/bin/env python3
"""Keeps the package in an environment the same as in this folder: prints a sum of its sources, and fails unless that is
the sum that was noted when it was installed. With --install it is installed where that is not so."""

import hashlib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
NOTE = pathlib.Path(sys.prefix) / "rlhost.sum"
SOURCES = ["setup.py", "pyproject.toml", "src/*.[ch]", "rlhost/**/*.py*", "rlhost/py.typed", "../c/native/*.[ch]",
           "../../pipeline/export/rlhost_policy.py"]


def total():
    """The sum of all that the package is made from, and of the interpreter that it is made for."""
    digest = hashlib.sha256(sys.version.encode())
    for pattern in SOURCES:
        for file in sorted(HERE.glob(pattern)):
            if file.suffix not in (".pyc",) and file.is_file():
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def main():
    now = total()
    if NOTE.exists() and NOTE.read_text() == now:
        print(now)
        return 0
    if sys.argv[1:] != ["--install"]:
        print("not installed as it is here: " + (NOTE.read_text() if NOTE.exists() else "no note"), file=sys.stderr)
        return 1
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                    "--no-build-isolation", "--no-deps", "--force-reinstall", HERE], check=True,
                   env={**os.environ, "RLHOST_PROGRAM": ""})  # tests name the program that they build
    NOTE.write_text(now)
    print(now)
    return 0


if __name__ == "__main__":
    sys.exit(main())
