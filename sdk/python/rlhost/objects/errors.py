"""What can go wrong with an object."""

from __future__ import annotations


class ObjectError(Exception):
    """What went wrong with an object; the subclasses say what a caller may want to decide on."""


class NotFound(ObjectError): """There is no object of that name."""
class Exists(ObjectError): """There is an object of that name already."""
class Removed(ObjectError): """The object was removed while it was used."""
class NoEntry(ObjectError, LookupError): """The object has no entry of that index."""
class Empty(ObjectError): """The object has no entry, or none as new as asked for."""
class Full(ObjectError): """Every block of the object is in use."""
class Busy(ObjectError): """The entry is being read."""
class Spent(ObjectError): """What was claimed has been given back before."""
class Foreign(ObjectError): """The claim belongs to another session."""
class WrongKind(ObjectError): """A claim for reading was used to write, or the other way round."""
class TooLarge(ObjectError, ValueError): """The array does not fit the object's blocks."""
class WrongTracks(ObjectError, ValueError): """The number of arrays is not the number of tracks."""
class WrongDType(ObjectError, TypeError): """The array's dtype is not one that the track takes."""
class LimitExceeded(ObjectError, ValueError): """A number is outside of what the host allows."""
class Closed(ObjectError): """The store, or the host's, has been closed."""
class BadRequest(ObjectError): """The host did not understand the request."""
class Canceled(ObjectError): """The operation was cancelled while it waited."""
class HostLost(ObjectError, ConnectionError): """The host is gone. Every claim went with it; the next use connects anew."""


# By the number that the host sends, less 16.
ERRORS = (NotFound, Exists, Removed, NoEntry, Empty, Full, Busy, Spent, Foreign, WrongKind, TooLarge, WrongTracks,
          WrongDType, LimitExceeded, Closed, BadRequest, BadRequest, Canceled)
FIRST_ERROR = 16
