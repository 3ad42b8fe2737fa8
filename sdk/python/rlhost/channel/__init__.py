"""Channels: queues of items with keys and weights, for programs of one user. See ``rlhost.Channel``."""

from .channel import Channel as Channel
from .dealing import deal as deal
from .errors import (
    Canceled as Canceled, ChannelError as ChannelError, Closed as Closed, Empty as Empty, Full as Full, Invalid as Invalid, Lost as Lost,
    NoChannel as NoChannel, TooLarge as TooLarge,
)
from .handle import Handle as Handle

__all__ = ["Canceled", "Channel", "ChannelError", "Closed", "Empty", "Full", "Handle", "Invalid", "Lost", "NoChannel", "TooLarge", "deal"]
