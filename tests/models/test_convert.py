"""The converter: graphs of every format against the exact one, and checkpoints that it must refuse."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from small_encoders import SMALL_ENCODERS, make_ids, write_encoder, write_tokenizer
from tiny_bert import embed, write_checkpoint

from each import each
from memoryd.models import ModelBroken
from memoryd.models.convert import convert as conversion
from memoryd.models.convert.checkpoint import OUTPUT, assemble, read_checkpoint
from memoryd.models.convert.convert import Format, are_rows_exact, best_format, convert, observe
from memoryd.models.convert.graph import Graph
from memoryd.models.convert.quantise import MIDDLE, SMALL_STEPS, STEPS, Range, make_rows, quantise_blocks
from memoryd.models.session import open_session

needs_exact_rows8 = pytest.mark.skipif(
    not are_rows_exact(STEPS),
    reason="rows8 needs AVX512-VNNI or AVX-VNNI: without them this processor saturates 16-bit sums",
)
TEXTS = ([2, 3], [2, 4, 3], [2, 4, 5, 6, 7, 3], [2, *[8, 9, 10, 11] * 15, 3])


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize(
    ("form", "least"),
    [("rows7", 0.998), pytest.param("rows8", 0.999, marks=needs_exact_rows8)],
)
def test_a_converted_graph_agrees_with_the_exact_one(
    checkpoint: Path, tmp_path: Path, form: Format, least: float, pooling: str
) -> None:
    # The tiny model has an outlier channel in its only block, which rows8 balances.
    assert convert(checkpoint, tmp_path / "model.onnx", pooling, form).startswith(f"{form}/")
    session = open_session(tmp_path / "model.onnx", threads=1)
    for ids in TEXTS:
        found = session.run(None, {"input_ids": np.array([ids], np.int64)})[0][0]
        assert found @ embed(ids, pooling) >= least
        assert np.linalg.norm(found) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("form", ["fp32", "rows7", "rows8"])
def test_the_vector_of_a_text_does_not_depend_on_its_neighbours(checkpoint: Path, tmp_path: Path, form: Format) -> None:
    convert(checkpoint, tmp_path / "model.onnx", "mean", form)
    session = open_session(tmp_path / "model.onnx", threads=1)
    batch = np.array([[2, 4, 5, 6, 3], [2, 7, 8, 9, 3], [2, 1, 1, 1, 3]], np.int64)
    together = session.run(None, {"input_ids": batch})[0]
    alone = np.concatenate([session.run(None, {"input_ids": batch[row : row + 1]})[0] for row in range(3)])
    assert (together * alone).sum(axis=1) == pytest.approx(1, abs=1e-5)


def test_conversion_is_reproducible(checkpoint: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        convert(checkpoint, tmp_path / name, "mean", "rows8")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@each(
    ("changes", "reason"),
    [
        ({"model_type": "t5"}, "the model type 't5'"),
        ({"model_type": None}, "the model type None"),
        ({"hidden_act": "relu"}, "the activation 'relu'"),
        ({"hidden_act": ["gelu"]}, "the activation"),
        ({"position_embedding_type": "relative_key"}, "relative"),
        ({"num_attention_heads": None}, "config.json"),
        ({"num_hidden_layers": 9}, "no tensor 'encoder.layer.2"),
        ({"num_hidden_layers": 1}, "has 2 layers, config.json names 1"),
        ({"model_type": "modernbert"}, "the model type 'modernbert'"),
    ],
)
def test_what_is_no_bert_is_refused(tmp_path: Path, changes: dict[str, object], reason: str) -> None:
    folder = write_checkpoint(tmp_path / "odd", **changes)
    with pytest.raises(ModelBroken, match=reason):
        convert(folder, tmp_path / "model.onnx", "mean", "fp32")


@pytest.mark.parametrize("form", ["rows7", pytest.param("rows8", marks=needs_exact_rows8)])
@pytest.mark.parametrize("name", ["roberta", "bert, projected twice"])
def test_every_format_stores_every_family(tmp_path: Path, name: str, form: Format) -> None:
    """Random weights make more of a rounding than those of a trained model: a mistake would be far below 0.98."""
    encoder = SMALL_ENCODERS[name]
    folder = write_encoder(tmp_path / "source", encoder)
    write_tokenizer(folder / "tokenizer.json", encoder.config["vocab_size"])
    convert(folder, tmp_path / "exact.onnx", encoder.pooling, "fp32")
    convert(folder, tmp_path / "model.onnx", encoder.pooling, form)
    exact, session = (open_session(tmp_path / f"{name}.onnx", threads=1) for name in ("exact", "model"))
    for ids in make_ids(encoder):
        feeds = {"input_ids": np.array([ids], np.int64)}
        assert session.run(None, feeds)[0][0] @ exact.run(None, feeds)[0][0] >= 0.98


def test_a_truncated_checkpoint_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    weights = checkpoint / "model.safetensors"
    whole = weights.read_bytes()
    for kept in (0, 5, 20, len(whole) // 2, len(whole) - 1):
        weights.write_bytes(whole[:kept])
        with pytest.raises(ModelBroken, match="safetensors"):
            convert(checkpoint, tmp_path / "model.onnx", "mean", "fp32")


@needs_exact_rows8
def test_a_row_of_zeros_is_multiplied_as_any_other() -> None:
    """The codes of such a row mean nothing, and its scale is 0; two groups, of which one is all zeros."""
    weight = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
    seen = {"m": Range(np.zeros(8, np.float32), np.ones(8, np.float32))}
    graph = Graph()
    table = graph.add_constant("table", np.array([[0] * 8, [1, 2, 3, 4, 0, 0, 0, 0]], np.float32))
    terms = make_rows(seen, group=4).multiply(graph, "m", graph.add("Gather", [table, "input_ids"], "rows"), weight)
    session = open_session(graph.serialise([graph.add("Sum", terms, "total")]), threads=1)
    [product] = session.run(None, {"input_ids": np.array([[0, 1]], np.int64)})
    assert not product[0, 0].any()
    assert np.allclose(product[0, 1], weight @ [1, 2, 3, 4, 0, 0, 0, 0], atol=0.1)


def test_blocks_round_to_the_nearest_of_255_codes() -> None:
    codes, scales = quantise_blocks(np.array([[1.0, -0.5, 0.0, 0.25, 2.0]], np.float32), block=4)
    assert scales == pytest.approx(np.array([[1 / 127, 2 / 127]]))
    assert codes.tolist() == [[[255, 64, 128, 160], [255, 128, 128, 128]]]  # -63.5 and 31.75 around 128


def test_a_graph_is_written_as_the_onnx_package_writes_it() -> None:
    graph = Graph()
    constants = {
        "floats": np.arange(600, dtype=np.float32).reshape(2, 300).T,  # columns: stored row by row
        "codes": np.array([[-1, 127]], np.int8),
        "bytes": np.uint8(128),
        "places": np.array([0, -1, 2**40], np.int64),
        "nothing": np.zeros((0, 4), np.float32),
    }
    for name, value in constants.items():
        graph.add_constant(name, value)
        graph.add_constant(name, np.float32(0))  # once per name
    graph.add("Gather", ["floats", "input_ids"], "größe")
    graph.add("LayerNormalization", ["größe", "floats"], "norm", epsilon=1e-12, axis=-1)
    graph.add_contributed("MultiHeadAttention", ["norm"], "mixed", num_heads=12)
    graph.split("mixed", ["left", "right"])

    def node(kind: str, inputs: list[str], outputs: list[str], name: str, **attributes: object) -> onnx.NodeProto:
        return helper.make_node(kind, inputs, outputs, name=name, **attributes)

    nodes = [
        node("Gather", ["floats", "input_ids"], ["größe"], "größe"),
        node("LayerNormalization", ["größe", "floats"], ["norm"], "norm", epsilon=1e-12, axis=-1),
        node("MultiHeadAttention", ["norm"], ["mixed"], "mixed", domain="com.microsoft", num_heads=12),
        node("Split", ["mixed"], ["left", "right"], "left.split", axis=-1, num_outputs=2),
    ]
    ids = helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, ["texts", "tokens"])
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in ("left", "right")]
    stored = [onnx.numpy_helper.from_array(np.array(value, order="C"), name) for name, value in constants.items()]
    model = helper.make_model(
        helper.make_graph(nodes, "embedder", [ids], ends, stored),
        opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)],
        ir_version=9,
        producer_name="memoryd",
    )
    assert graph.serialise(["left", "right"]) == model.SerializeToString(deterministic=True)


def test_small_weights_never_exceed_16_bits_where_pairs_of_products_are_added(checkpoint: Path) -> None:
    """As pmaddubsw adds them, of all the pairs that bytes and stored weights can make."""
    graph = assemble(
        read_checkpoint(checkpoint), "mean", make_rows(observe(read_checkpoint(checkpoint), checkpoint), SMALL_STEPS)
    )
    model = onnx.load_from_string(graph.serialise([OUTPUT]))
    products = [node.input[1] for node in model.graph.node if node.op_type == "MatMulIntegerToFloat"]
    stored = [onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer if tensor.name in products]
    assert len(stored) == len(products) > 0
    for weights in stored:
        assert weights.dtype == np.int8
        pairs = weights.astype(np.int64).reshape(-1, 2, weights.shape[1])
        largest = (np.maximum(pairs, 0) * 255).sum(axis=1).max()
        smallest = (np.minimum(pairs, 0) * 255).sum(axis=1).min()
        assert -(2**15) <= smallest <= largest < 2**15


class Saturating:
    """A session whose sums of products of two bytes end at 16 bits, as on x86 without 8-bit dot products."""

    def __init__(self, model: bytes, rows: int, most: int) -> None:
        initializers = {tensor.name: tensor for tensor in onnx.load_from_string(model).graph.initializer}
        self.weight = int(onnx.numpy_helper.to_array(initializers["probe.0.weight"]).max())
        self.rows, self.most = rows, most  # from how many rows on, and at which sum

    def run(self, outputs: None, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        tokens = inputs["input_ids"].shape[1]
        outputs_of_probe, inputs_of_probe = conversion.PROBE
        pair = 2 * (2 * MIDDLE - 1) * self.weight
        share = min(pair, self.most) / pair if tokens >= self.rows else 1
        return [np.full((1, tokens, outputs_of_probe), inputs_of_probe * share)]


@pytest.mark.parametrize(
    ("rows", "most", "form"),
    [(1, 2**15 - 1, "rows7"), (2, 2**15 - 1, "rows7"), (100, 2**15 - 1, "rows8"), (1, 2**14, "fp32")],
)
def test_the_format_follows_what_the_processor_makes_of_the_largest_codes(
    monkeypatch: pytest.MonkeyPatch, rows: int, most: int, form: Format
) -> None:
    monkeypatch.setattr(conversion, "open_session", lambda model, threads: Saturating(model, rows, most))
    assert best_format() == form
