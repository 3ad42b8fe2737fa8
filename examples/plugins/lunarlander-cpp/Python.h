// Box2D as it comes in Python's package includes Python's header, for the exceptions of its assertions. box2d.h has its own assertions.
