"""Values that are nested too deep, cut out of msgpack: a decoder that meets one gives up all that is around it."""

_NIL = b"\xc0"
# Of types whose first byte says all: how many bytes follow it.
_FIXED = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_FIXED |= {0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}
# Of texts, bytes and extensions: how many bytes their length has, and how many follow beside it.
_SIZED = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}
_SIZED |= {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}
# Of arrays and maps: how many bytes their length has, and how many values each entry is.
_NESTED = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}


def cut_deep(data: bytes, most: int) -> bytes:
    """Return msgpack with nil in place of lists and maps that are in more than `most` others.

    Raise `IndexError` for what is none.
    """
    kept: list[bytes] = []
    left = [1]  # values still to come, level by level
    at = copied = 0
    is_cutting = False
    while left:
        if not left[-1]:
            left.pop()
            if is_cutting and len(left) == most + 2:
                kept.append(_NIL)
                copied, is_cutting = at, False
            continue
        left[-1] -= 1
        begin, (at, values) = at, _skip(data, at)
        if values is not None:
            if len(left) == most + 2 and not is_cutting:
                kept.append(data[copied:begin])
                is_cutting = True
            left.append(values)
    return b"".join([*kept, data[copied:]])


def _skip(data: bytes, at: int) -> tuple[int, int | None]:
    """Return where a value ends, or the head of one that has others in it, and how many these are."""
    kind = data[at]
    at += 1
    if kind < 0x80 or kind >= 0xE0 or kind in (0xC0, 0xC2, 0xC3):
        return at, None
    if kind < 0xA0:
        return at, 2 * (kind & 15) if kind < 0x90 else kind & 15
    if kind < 0xC0:
        return at + (kind & 31), None
    if kind in _FIXED:
        return at + _FIXED[kind], None
    if kind in _SIZED:
        width, more = _SIZED[kind]
        return at + width + more + int.from_bytes(data[at : at + width]), None
    if kind in _NESTED:
        width, each = _NESTED[kind]
        return at + width, each * int.from_bytes(data[at : at + width])
    raise IndexError("there is no such type")
