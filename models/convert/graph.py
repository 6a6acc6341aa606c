"""Write an ONNX graph node by node.

`Graph` is a thin layer over `onnx.helper`: it names the nodes and collects the constants. Contributed operators of
ONNX Runtime (domain com.microsoft) are used if they fuse several standard ones.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

OPSET = 18
IR_VERSION = 9
CONTRIBUTED = "com.microsoft"
FLOAT = int(onnx.TensorProto.FLOAT)
INT64 = int(onnx.TensorProto.INT64)


class Graph:
    """An ONNX graph under construction; methods return the names of what they add."""

    def __init__(self) -> None:
        """Start with an empty graph whose input is `input_ids`, shape (texts, tokens)."""
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def add_constant(self, name: str, value: NDArray[Any] | np.generic) -> str:
        """Add a constant (once per name)."""
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.array(value, order="C"), name)
        return name

    def add(self, kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """Add a node of the standard operator set with one output."""
        self._nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def add_contributed(self, kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """Add a node of ONNX Runtime's contributed set with one output."""
        return self.add(kind, inputs, output, domain=CONTRIBUTED, **attributes)

    def split(self, value: str, outputs: list[str]) -> list[str]:
        """Cut a value into equal parts along its last axis."""
        name = f"{outputs[0]}.split"
        self._nodes.append(helper.make_node("Split", [value], outputs, name=name, axis=-1, num_outputs=len(outputs)))
        return outputs

    def serialise(self, outputs: Sequence[str]) -> bytes:
        """Return the model file that computes `outputs`."""
        ids = helper.make_tensor_value_info("input_ids", INT64, ["texts", "tokens"])
        ends = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
        graph = helper.make_graph(self._nodes, "embedder", [ids], ends, list(self._constants.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIBUTED, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="memoryd")
        return bytes(model.SerializeToString(deterministic=True))
