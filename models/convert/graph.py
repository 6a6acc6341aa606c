"""Write an ONNX graph node by node.

A model file is one Protocol Buffers message, and a graph needs only a few of its fields. They are written here in
ascending order of their numbers in onnx.proto. The package `onnx` writes the same bytes, but takes 30 MB.
Contributed operators of ONNX Runtime (domain com.microsoft) are used if they fuse several standard ones.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

OPSET = 18
IR_VERSION = 9
CONTRIBUTED = "com.microsoft"
FLOAT, INT64 = 1, 7  # of TensorProto.DataType
_TYPES = {"float32": FLOAT, "uint8": 2, "int8": 3, "int64": INT64}


class Graph:
    """An ONNX graph under construction; methods return the names of what they add."""

    def __init__(self) -> None:
        """Start with an empty graph whose input is `input_ids`, shape (texts, tokens)."""
        self._nodes: list[bytes] = []
        self._constants: dict[str, bytes] = {}

    def add_constant(self, name: str, value: NDArray[Any] | np.generic) -> str:
        """Add a constant (once per name)."""
        if name not in self._constants:
            array = np.asarray(value)
            sizes = [_field(1, size) for size in array.shape]
            data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
            self._constants[name] = b"".join(
                [*sizes, _field(2, _TYPES[array.dtype.name]), _field(8, name), _field(9, data)]
            )
        return name

    def add(self, kind: str, inputs: Sequence[str], output: str, **attributes: float) -> str:
        """Add a node of the standard operator set with one output."""
        self._add_node(kind, inputs, [output], output, attributes)
        return output

    def add_contributed(self, kind: str, inputs: Sequence[str], output: str, **attributes: float) -> str:
        """Add a node of ONNX Runtime's contributed set with one output."""
        self._add_node(kind, inputs, [output], output, attributes, CONTRIBUTED)
        return output

    def split(self, value: str, outputs: list[str]) -> list[str]:
        """Cut a value into equal parts along its last axis."""
        self._add_node("Split", [value], outputs, f"{outputs[0]}.split", {"axis": -1, "num_outputs": len(outputs)})
        return outputs

    def serialise(self, outputs: Sequence[str]) -> bytes:
        """Return the model file that computes `outputs`."""
        shape = b"".join(_field(1, _field(2, axis)) for axis in ("texts", "tokens"))
        graph = [_field(1, node) for node in self._nodes]
        graph += [_field(2, "embedder"), *(_field(5, constant) for constant in self._constants.values())]
        graph += [_field(11, _value("input_ids", INT64, _field(2, shape)))]
        graph += [_field(12, _value(name, FLOAT)) for name in outputs]
        operators = [
            _field(8, _field(1, name) + _field(2, version)) for name, version in (("", OPSET), (CONTRIBUTED, 1))
        ]
        return b"".join([_field(1, IR_VERSION), _field(2, "memoryd"), _field(7, b"".join(graph)), *operators])

    def _add_node(
        self,
        kind: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        name: str,
        attributes: dict[str, float],
        domain: str = "",
    ) -> None:
        parts = [*(_field(1, one) for one in inputs), *(_field(2, one) for one in outputs)]
        parts += [_field(3, name), _field(4, kind)]
        parts += [_field(5, _attribute(*attribute)) for attribute in sorted(attributes.items())]
        self._nodes.append(b"".join([*parts, _field(7, domain)] if domain else parts))


def _attribute(name: str, value: float) -> bytes:
    """Encode a number as an AttributeProto, whose last field is its type."""
    is_float = isinstance(value, float)
    return _field(1, name) + _field(2 if is_float else 3, value) + _field(20, 1 if is_float else 2)


def _value(name: str, kind: int, shape: bytes = b"") -> bytes:
    """Encode an input or output as a ValueInfoProto."""
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + shape))


def _field(number: int, value: float | str | bytes) -> bytes:
    """Encode a field: an integer, a 32-bit float, or a text, bytes or a message preceded by the length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return b"".join([_varint(number << 3 | 2), _varint(len(data)), data])


def _varint(value: int) -> bytes:
    """Encode an integer in groups of 7 bits, the lowest first; a negative one as 64 bits."""
    value &= (1 << 64) - 1
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])
