"""The release that the package belongs to. Written by hostabi/internal/abigen."""

__version__ = "0.1.0.dev0"
RELEASE = "0.1.0-dev"  # as the program rlhost writes it
