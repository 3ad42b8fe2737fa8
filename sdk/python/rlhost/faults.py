"""Exceptions of an author's code, in one line."""

from __future__ import annotations

import os
import site
import traceback


def told(error: BaseException) -> str:
    """An exception in one line: the end of the traceback, and its last place in the user's files, else in another package's."""
    last, at = traceback.format_exception_only(type(error), error)[-1].strip(), place(error)
    return f"{last} ({at})" if at else last


def place(error: BaseException) -> str:
    """Where an exception was raised, such as train.py:40: its last place in the user's files, else in another package's."""
    at = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_HERE)]
    own = [f for f in at if not _library(f.filename)] or at
    return f"{os.path.basename(own[-1].filename)}:{own[-1].lineno}" if own else ""


def raised(error: BaseException) -> tuple[str, str]:
    """The type of an exception, and its text."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return name, str(error)


def _library(file: str) -> bool:
    """Whether a file belongs to Python or to a package that was installed."""
    return file.startswith("<") or any(os.path.abspath(file).startswith(f + os.sep) for f in (os.path.dirname(os.__file__), *site.getsitepackages()))


_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
