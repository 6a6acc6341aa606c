"""What is nested too deep is cut out of a reply, and all else is as it was."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.daemon.shared.depth import cut_deep

VALUES: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=3), inner, max_size=20),
    max_leaves=40,
)


def cut(value: Any, most: int) -> Any:
    if isinstance(value, list):
        return [cut(one, most - 1) for one in value] if most >= 0 else None
    if isinstance(value, dict):
        return {key: cut(one, most - 1) for key, one in value.items()} if most >= 0 else None
    return value


@given(VALUES, st.integers(0, 4))
def test_what_is_deeper_is_nil(value: Any, most: int) -> None:
    assert msgspec.msgpack.decode(cut_deep(msgspec.msgpack.encode(value), most)) == cut(value, most)


def test_the_deepest_is_cut_and_its_neighbours_stay() -> None:
    deep = msgspec.Raw(b"\x91" * 100_000 + b"\x00")
    data = msgspec.msgpack.encode([1, {"a": deep, "b": "x" * 70_000}, deep, 2])
    assert msgspec.msgpack.decode(cut_deep(data, 1)) == [1, {"a": None, "b": "x" * 70_000}, [None], 2]


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x92\x01"])
def test_what_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(IndexError):
        cut_deep(data, 3)
