"""The release that the package belongs to. Written by hostabi/internal/abigen."""

__version__ = "0.1.0.dev0"
