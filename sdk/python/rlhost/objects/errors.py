"""Errors of objects."""

from __future__ import annotations


class ObjectError(Exception):
    """An error of an object; callers can tell the subclasses apart."""


class NotFound(ObjectError): """There is no object of that name."""
class Exists(ObjectError): """There is an object of that name already."""
class Removed(ObjectError): """The object was removed while it was used."""
class NoEntry(ObjectError, LookupError): """The object has no entry of that index."""
class Empty(ObjectError): """The object has no entry, or none that is new enough."""
class Full(ObjectError): """Every block of the object is in use."""
class Busy(ObjectError): """The entry is being read."""
class Spent(ObjectError): """The claim has been released already."""
class Foreign(ObjectError): """The claim belongs to another session."""
class Locked(ObjectError): """The entry is locked by others."""
class Torn(ObjectError): """The entry was being written in place by a program that did not finish."""
class WrongKind(ObjectError): """A claim for reading was used to write, or the other way round."""
class TooLarge(ObjectError, ValueError): """The array does not fit the object's blocks."""
class WrongTracks(ObjectError, ValueError): """The number of arrays is not the number of tracks."""
class WrongDType(ObjectError, TypeError): """The track does not take the array's dtype."""
class LimitExceeded(ObjectError, ValueError): """A number is outside the host's limits."""
class Closed(ObjectError): """The store, or the host's, has been closed."""
class BadRequest(ObjectError): """The host did not understand the request."""
class Canceled(ObjectError): """The operation was cancelled while it waited."""
class Elsewhere(ObjectError, ValueError): """The store would be on another machine."""
class HostLost(ObjectError, ConnectionError): """The host and all claims are gone; the next use connects again."""


# By the number that the host sends, less 16.
ERRORS = (NotFound, Exists, Removed, NoEntry, Empty, Full, Busy, Spent, Foreign, WrongKind, TooLarge, WrongTracks,
          WrongDType, LimitExceeded, Closed, BadRequest, BadRequest, Canceled, Locked)
FIRST_ERROR = 16
