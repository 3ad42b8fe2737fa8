"""python -m rlhost is the command rlhost."""

from .program import main

main()
