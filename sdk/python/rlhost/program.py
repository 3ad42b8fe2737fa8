"""The program rlhost: where it is, and how Python calls it."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

from .version import RELEASE

_OWN = pathlib.Path(__file__).parent / "bin" / "rlhost"


class ProgramError(RuntimeError):
    """The program rlhost is missing, or of another version than this package."""


def _elsewhere() -> str:
    """PATH without the folder of this Python's scripts, where rlhost is main of this module."""
    own = os.path.realpath(sysconfig.get_path("scripts"))
    return os.pathsep.join(p for p in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.realpath(p) != own)


@functools.lru_cache(maxsize=None)
def _found(named: str | None) -> str:
    """The path of the program: the named one, else this package's, else the first on PATH. The version of a program that did not come
    with the package has to be the package's."""
    if named is None and _OWN.is_file():
        return str(_OWN)
    path = shutil.which(named) if named else shutil.which("rlhost", path=_elsewhere())
    if path is None:
        looked = f"RLHOST_PROGRAM={named}" if named else f"{_OWN} and PATH"
        raise ProgramError(f"the program rlhost is not there: looked at {looked}. pip install rlhost brings it; from a checkout, make build "
                           "and RLHOST_PROGRAM=bin/rlhost")
    try:
        done = subprocess.run([path, "version", "--json"], capture_output=True, text=True, check=True, timeout=60)
        version = json.loads(done.stdout)["version"]
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as e:
        raise ProgramError(f"{path} does not tell its version, so it is no rlhost: {e}") from None
    if version != RELEASE:
        raise ProgramError(f"{path} is rlhost {version} and this package is {RELEASE}: install the same version of both, or name "
                           "another program by RLHOST_PROGRAM")
    return path


def program() -> str:
    """The path of the program rlhost: RLHOST_PROGRAM, else the one that came with this package, else the one on PATH.

    Raises ProgramError if there is none, or one of another version."""
    return _found(os.environ.get("RLHOST_PROGRAM"))


def environment() -> dict[str, str]:
    """The environment of the program: its environments run in this Python, which finds the modules that this one finds."""
    given = dict(os.environ)
    given.setdefault("RLHOST_PYTHON", sys.executable)
    given["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in sys.path)
    return given


def ask(error: type[Exception], *words: str) -> str:
    """What the program prints for some words of its command line. Raises the error, with its words, where it fails."""
    done = subprocess.run([program(), *words], capture_output=True, text=True, env=environment(), stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise error(done.stderr.strip().removeprefix("rlhost: "))
    return done.stdout


def feed(child: subprocess.Popen[bytes], text: str) -> None:
    """Writes the whole standard input of the program. One that has ended meanwhile says why itself."""
    assert child.stdin is not None
    try:
        child.stdin.write(text.encode())
        child.stdin.close()
    except BrokenPipeError:
        pass


def main() -> None:
    """The command rlhost."""
    try:
        path = program()
    except ProgramError as e:
        sys.exit(f"rlhost: {e}")
    os.environ.setdefault("RLHOST_PYTHON", sys.executable)
    os.execv(path, ["rlhost", *sys.argv[1:]])
