"""Logging to the host: lines of JSON on standard error."""

from __future__ import annotations

import json
import logging
import sys
import time

_LEVELS = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warn", logging.ERROR: "error",
           logging.CRITICAL: "error"}
_NAMES = {"trace": logging.DEBUG, "debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING,
          "error": logging.ERROR}


class Lines(logging.Handler):
    """Writes a record as one line, with the fields of extra={"fields": {...}}."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
            if record.exc_info:
                text += "\n" + logging.Formatter().formatException(record.exc_info)
            line = {"@level": _LEVELS.get(record.levelno, "info"), "@message": text,
                    "@timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
                    + f".{int(record.msecs):03d}000Z", **getattr(record, "fields", {})}
            sys.stderr.write(json.dumps(line, default=str) + "\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


_begun = False


def begin() -> None:
    """Makes the root logger write to the host, which reads standard error."""
    global _begun
    _begun = True
    root = logging.getLogger()
    root.handlers[:] = [Lines()]
    root.setLevel(logging.INFO)


def set_level(name: str) -> None:
    """Sets the lowest level that is written to the host, by its name for it."""
    if _begun:
        logging.getLogger().setLevel(_NAMES.get(name, logging.INFO))
