"""Errors of channels. Those with a code have a page in ``rlhost explain``."""

from __future__ import annotations

import queue


class ChannelError(Exception):
    """A call that a channel has refused."""


class Full(ChannelError, queue.Full):
    """There was no room for the item in time."""


class Empty(ChannelError, queue.Empty):
    """There was no item in time."""


class Closed(ChannelError):
    """The channel is closed: it takes no items, and nothing is left of the key."""


class TooLarge(ChannelError, ValueError):
    """The item is larger than the whole channel."""


class Invalid(ChannelError, ValueError):
    """A weight, a key, a name or a number that channels do not take."""


class NoChannel(ChannelError):
    """Nobody serves a channel of that name."""


class Lost(ChannelError):
    """The server of the channel has ended, or this client has left it."""


class Canceled(ChannelError):
    """The call was canceled by its handle."""


# Their codes, and the statuses in replies, of which the first is 1.
CODES: dict[type[ChannelError], str] = {NoChannel: "E110", TooLarge: "E111", Invalid: "E112", Closed: "E113", Lost: "E114"}
STATUSES: tuple[type[ChannelError], ...] = (Full, Empty, Closed, TooLarge, Invalid, Canceled, ChannelError, ChannelError)


def error(kind: type[ChannelError], text: str) -> ChannelError:
    """An error with its code before its words."""
    code = CODES.get(kind)
    return kind(f"{code}: {text}" if code else text)
