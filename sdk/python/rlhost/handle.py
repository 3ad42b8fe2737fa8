"""Handles: numbers that name one use of one block. They keep nothing alive; 0 names nothing."""

_BLOCK_BITS, _GENERATION_BITS = 19, 37


def handle_arena(handle: int) -> int:
    """The number of the arena that the handle belongs to."""
    return handle >> (_BLOCK_BITS + _GENERATION_BITS)


def handle_block(handle: int) -> int:
    """The index of the block within its arena."""
    return handle >> _GENERATION_BITS & (1 << _BLOCK_BITS) - 1


def handle_generation(handle: int) -> int:
    """Which use of the block the handle names."""
    return handle & (1 << _GENERATION_BITS) - 1


def handle_text(handle: int) -> str:
    """The handle as arena:block@generation."""
    return f"{handle_arena(handle)}:{handle_block(handle)}@{handle_generation(handle)}"
