"""Write an ONNX graph node by node.

`Graph` is the few lines between numpy and `onnx.helper`: it names things, keeps the constants, and checks the result.
Contributed operators of ONNX Runtime (domain com.microsoft) are used where they fuse several standard ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

OPSET = 18
IR_VERSION = 9
CONTRIBUTED = "com.microsoft"
FLOAT = int(onnx.TensorProto.FLOAT)


class Graph:
    """An ONNX graph under construction; methods return the names of what they add."""

    def __init__(self) -> None:
        """Start with an empty graph."""
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """Add a constant (once per name)."""
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def add(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add a node of the standard operator set with one output."""
        return self._add(kind, inputs, [output], "", attributes)[0]

    def add_contributed(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add a node of ONNX Runtime's contributed set with one output."""
        return self._add(kind, inputs, [output], CONTRIBUTED, attributes)[0]

    def split(self, value: str, outputs: list[str]) -> list[str]:
        """Cut a value into equal parts along its last axis."""
        return self._add("Split", [value], outputs, "", {"axis": -1, "num_outputs": len(outputs)})

    def save(self, path: Path, output: str, dimensions: int) -> None:
        """Write the model: input `input_ids` (texts, tokens), output `output` (texts, dimensions)."""
        ids = helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, ["texts", "tokens"])
        vectors = helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, ["texts", dimensions])
        graph = helper.make_graph(self._nodes, "embedder", [ids], [vectors], list(self._constants.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIBUTED, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="memoryd")
        path.write_bytes(model.SerializeToString(deterministic=True))

    def _add(
        self, kind: str, inputs: list[str], outputs: list[str], domain: str, attributes: dict[str, Any]
    ) -> list[str]:
        node = helper.make_node(kind, inputs, outputs, name=outputs[0], domain=domain, **attributes)
        self._nodes.append(node)
        return outputs
