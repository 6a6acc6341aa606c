"""ModernBERT: rotary positions, gated layers, most layers with attention to a window, each part normalised before it.

The window costs memory and time in proportion to a text's length: a text longer than half a window is cut into blocks
of that size, and each block attends to itself and its two neighbours, with a mask for what is further away.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from memoryd.models.convert.blocks import (
    Dense,
    Normed,
    Tensors,
    add_sum,
    add_words,
    choose_activation,
    make_dense,
    read_floats,
    smooth,
    smooth_values,
)
from memoryd.models.convert.graph import Graph
from memoryd.models.convert.quantise import Floats, Linear
from memoryd.models.errors import ModelBroken

# What a config.json leaves out where it is the usual.
USUAL_EPSILON, USUAL_WINDOW, USUAL_INTERVAL = 1e-5, 128, 3
USUAL_GLOBAL_THETA, USUAL_LOCAL_THETA = 160_000.0, 10_000.0
USUAL_POSITIONS = 8192

FULL, SLIDING = "full_attention", "sliding_attention"
FAR = -1e9  # added to the score of a token that is not to be seen


class ModernBert(NamedTuple):
    """What the graph needs of a checkpoint's config.json."""

    layers: tuple[str, ...]
    """Of each layer FULL or SLIDING."""
    heads: int
    epsilon: float
    activation: str
    positions: int
    half_window: int
    thetas: dict[str, float]
    """Of each kind of layer the base of its rotary positions."""

    @classmethod
    def read(cls, config: dict[str, Any]) -> Self:
        """Read a config.json; raise ModelBroken for what the graph cannot express."""
        layers = _read_layers(config)
        if unknown := set(layers) - {FULL, SLIDING}:
            raise ModelBroken(
                f"config.json names layers of the kind {sorted(unknown)[0]!r}, which cannot be converted."
            )
        return cls(
            layers=layers,
            heads=int(config["num_attention_heads"]),
            epsilon=float(config.get("norm_eps", USUAL_EPSILON)),
            activation=choose_activation(config["hidden_activation"]),
            positions=int(config.get("max_position_embeddings", USUAL_POSITIONS)),
            half_window=int(config.get("local_attention", USUAL_WINDOW)) // 2,
            thetas=_read_thetas(config),
        )

    @property
    def words(self) -> str:
        """The name of the table of words."""
        return "embeddings.tok_embeddings.weight"

    @property
    def stack(self) -> str:
        """How the names of the layers' tensors begin."""
        return "layers."

    def count_positions(self, tensors: Tensors) -> int:
        """Return how many tokens a text may have."""
        return self.positions

    def add_tokens(self, graph: Graph, tensors: Tensors, linear: Linear, small_table: bool) -> str:
        """Add the encoder; return the name of its last state, shape (texts, tokens, channels)."""
        table = tensors[self.words]
        if table.shape[1] % (2 * self.heads):
            raise ValueError(f"{table.shape[1]} channels do not make {self.heads} heads of an even size")
        window = _add_window(graph, self.half_window, table.shape[1]) if SLIDING in self.layers else None
        first = self._read_normed(graph, tensors, "embeddings.norm", add_words(graph, table, small_table))
        state = first.add("")
        for number, kind in enumerate(self.layers):
            layer = f"{self.stack}{number}"
            # The first layer has no normalisation of its own: its input was normalised just before.
            before = self._read_normed(graph, tensors, f"{layer}.attn_norm", state) if number else first
            attention = _Attention(self, kind, window if kind == SLIDING else None)
            mixed = attention.add(graph, tensors, layer, before, linear)
            state = add_sum(graph, [state, *mixed], f"{layer}.attn")
            between = self._read_normed(graph, tensors, f"{layer}.mlp_norm", state)
            state = add_sum(graph, [state, *self._add_gated(graph, tensors, layer, between, linear)], f"{layer}.mlp")
        return self._read_normed(graph, tensors, "final_norm", state).add("")

    def _read_normed(self, graph: Graph, tensors: Tensors, name: str, total: str) -> Normed:
        weight = read_floats(tensors, f"{name}.weight")
        return Normed(graph, name, total, weight, _read_bias(tensors, name, len(weight)), self.epsilon)

    def _add_gated(self, graph: Graph, tensors: Tensors, layer: str, between: Normed, linear: Linear) -> list[str]:
        """Add the gated layer: one half of the wide state, activated, times the other half; return the terms."""
        up, down = (_read_dense(tensors, linear, f"{layer}.mlp.{part}") for part in ("Wi", "Wo"))
        wide = add_sum(graph, up.multiply(graph, linear, between.add(".smooth", None, up.smoothing)), up.name)
        bias, gate_bias = np.split(up.bias, 2)
        half, gate = graph.split(wide, [f"{layer}.mlp.half", f"{layer}.mlp.gate"])
        active = graph.add_contributed(
            self.activation, [half, graph.add_constant(f"{half}.bias", bias)], f"{layer}.mlp.active"
        )
        if gate_bias.any():
            gate = graph.add("Add", [gate, graph.add_constant(f"{gate}.bias", gate_bias)], f"{gate}.biased")
        gated = graph.add("Mul", [active, gate], f"{layer}.mlp.gated")
        terms = down.multiply(graph, linear, smooth(graph, gated, down.smoothing))
        return [*terms, *down.list_bias(graph)]


class _Attention(NamedTuple):
    """The attention of a layer; without `window` every token sees all others."""

    model: ModernBert
    kind: str
    window: "_Window | None"

    def add(self, graph: Graph, tensors: Tensors, layer: str, before: Normed, linear: Linear) -> list[str]:
        """Add the attention and its matrix; return the terms."""
        back = _read_dense(tensors, linear, f"{layer}.attn.Wo")
        stacked = read_floats(tensors, f"{layer}.attn.Wqkv.weight")
        weights = np.split(stacked, 3)
        biases = np.split(_read_bias(tensors, f"{layer}.attn.Wqkv", len(stacked)), 3)
        smooth_values(weights, biases, back.smoothing)
        qkv = make_dense(linear, f"{layer}.attn.Wqkv", np.concatenate(weights), np.concatenate(biases))
        terms = qkv.multiply(graph, linear, before.add(".smooth", None, qkv.smoothing))
        total = add_sum(graph, [*terms, *qkv.list_bias(graph)], qkv.name)
        query, key, content = graph.split(total, [f"{layer}.attn.{part}" for part in ("query", "key", "value")])
        size = len(stacked) // 3 // self.model.heads
        operands = [self._rotate(graph, query, size), self._rotate(graph, key, size), content]
        return [*back.multiply(graph, linear, self._attend(graph, layer, operands)), *back.list_bias(graph)]

    def _rotate(self, graph: Graph, value: str, size: int) -> str:
        """Turn the pairs of channels of each head by the position of their token."""
        frequencies = self.model.thetas[self.kind] ** -(np.arange(0, size, 2, dtype=np.float64) / size)
        angles = np.arange(self.model.positions)[:, None] * frequencies
        tables = [
            graph.add_constant(f"{self.kind}.{name}", wave(angles).astype(np.float32))
            for name, wave in (("cosine", np.cos), ("sine", np.sin))
        ]
        start = graph.add_constant("start", np.array([0], np.int64))
        return graph.add_contributed("RotaryEmbedding", [value, start, *tables], f"{value}.rotated")

    def _attend(self, graph: Graph, layer: str, operands: list[str]) -> str:
        name, heads = f"{layer}.attn.mixed", self.model.heads
        if self.window is None:
            return graph.add_contributed("MultiHeadAttention", operands, name, num_heads=heads)
        whole, cut = Graph(), Graph()
        short = whole.add_contributed("MultiHeadAttention", operands, f"{name}.whole", num_heads=heads)
        long = self.window.attend(cut, operands, f"{name}.cut", heads)
        return graph.choose(self.window.is_short, (whole, short), (cut, long), name)


class _Window(NamedTuple):
    """Values of the graph that all layers with a window share, for texts that are longer than half of it."""

    half: int
    channels: int
    is_short: str
    """Whether every token is within the window of every other."""
    length: str
    blocks: str
    """How many blocks there are."""
    query_pads: str
    """What fills the last block."""
    key_pads: str
    """What fills the last block, and a block before the first and after the last."""
    state_shape: str
    """Texts, tokens (with those that fill the last block), channels."""
    mask: str
    """Shape (texts x blocks, 1, half, 3 x half)."""

    def attend(self, graph: Graph, operands: list[str], name: str, heads: int) -> str:
        """Add the attention of each block to itself and its neighbours."""
        query, key, content = operands
        padded = graph.add("Pad", [query, self.query_pads], f"{name}.padded")
        block = graph.add_constant("block", np.array([-1, self.half, self.channels], np.int64))
        parts = [graph.add("Reshape", [padded, block], f"{name}.blocks")]
        for value in (key, content):
            padded = graph.add("Pad", [value, self.key_pads], f"{value}.padded")
            apart = graph.add_constant("apart", np.array([0, -1, self.half, self.channels], np.int64))
            near = _add_neighbours(graph, graph.add("Reshape", [padded, apart], f"{value}.apart"), self.blocks, axis=1)
            triple = graph.add_constant("triple", np.array([-1, 3 * self.half, self.channels], np.int64))
            parts.append(graph.add("Reshape", [near, triple], f"{value}.triple"))
        mixed = graph.add_contributed(
            "MultiHeadAttention", [*parts, "", "", self.mask], f"{name}.mixed", num_heads=heads
        )
        joined = graph.add("Reshape", [mixed, self.state_shape], f"{name}.joined")
        zero, one = (graph.add_constant(f"at.{at}", np.array([at], np.int64)) for at in (0, 1))
        return graph.add("Slice", [joined, zero, self.length, one], f"{name}.out")


def _add_window(graph: Graph, half: int, channels: int) -> _Window:
    """Add what depends on the length of a text alone."""

    def number(value: int) -> str:
        return graph.add_constant(f"number.{value}", np.array([value], np.int64))

    texts = graph.add("Shape", ["input_ids"], "window.texts", start=0, end=1)
    length = graph.add("Shape", ["input_ids"], "window.length", start=1, end=2)
    is_short = graph.add("LessOrEqual", [length, number(half + 1)], "window.is_short")
    rounded = graph.add("Add", [length, number(half - 1)], "window.rounded")
    blocks = graph.add("Div", [rounded, number(half)], "window.blocks")
    filled = graph.add("Mul", [blocks, number(half)], "window.filled")
    rest = graph.add("Sub", [filled, length], "window.rest")
    after = graph.add("Add", [rest, number(half)], "window.after")
    zero = number(0)
    query_pads = graph.add("Concat", [zero, zero, zero, zero, rest, zero], "window.query_pads", axis=0)
    key_pads = graph.add("Concat", [zero, number(half), zero, zero, after, zero], "window.key_pads", axis=0)
    state_shape = graph.add("Concat", [texts, filled, number(channels)], "window.state_shape", axis=0)
    nothing, cut = Graph(), Graph()
    empty = nothing.add(
        "Identity", [nothing.add_constant("nothing", np.zeros((0, 1, 1, 1), np.float32))], "window.none"
    )
    far = _add_mask(cut, half, (texts, length, blocks))
    mask = graph.choose(is_short, (nothing, empty), (cut, far), "window.mask")
    return _Window(half, channels, is_short, length, blocks, query_pads, key_pads, state_shape, mask)


def _add_mask(graph: Graph, half: int, sizes: tuple[str, str, str]) -> str:
    """Add the mask of (texts, length, blocks): FAR for tokens outside the window, or of no text, else zero."""
    texts, length, blocks = sizes
    scalars = {at: graph.add_constant(f"scalar.{at}", np.array(at, np.int64)) for at in (0, 1, -half)}
    more = graph.add("Add", [blocks, graph.add_constant("one", np.array([1], np.int64))], "window.more")
    end = graph.add("Mul", [more, graph.add_constant("half", np.array([half], np.int64))], "window.end")
    flat = graph.add("Squeeze", [end], "window.end.scalar")
    places = graph.add("Range", [scalars[-half], flat, scalars[1]], "window.places")
    apart = graph.add("Reshape", [places, graph.add_constant("rows", np.array([-1, half], np.int64))], "window.rows")
    near = _add_neighbours(graph, apart, blocks, axis=0)
    inside = graph.add(
        "And",
        [
            graph.add("GreaterOrEqual", [near, scalars[0]], "window.begun"),
            graph.add("Less", [near, length], "window.not_ended"),
        ],
        "window.inside",
    )
    one = graph.add_constant("axis.1", np.array([1], np.int64))
    rows, columns = np.arange(half)[:, None] + half, np.arange(3 * half)
    close = graph.add_constant("close", np.abs(rows - columns) <= half)
    seen = graph.add("And", [graph.add("Unsqueeze", [inside, one], "window.inside.rows"), close], "window.seen")
    values = [graph.add_constant("near", np.float32(0)), graph.add_constant("far", np.float32(FAR))]
    mask = graph.add("Unsqueeze", [graph.add("Where", [seen, *values], "window.scores"), one], "window.scores.heads")
    ones = graph.add_constant("ones", np.array([1, 1, 1], np.int64))
    return graph.add("Tile", [mask, graph.add("Concat", [texts, ones], "window.times", axis=0)], "window.tiled")


def _add_neighbours(graph: Graph, value: str, blocks: str, axis: int) -> str:
    """Put beside each block the one before and the one after; `value` has one more at either end of `axis`."""
    along = graph.add_constant(f"axis.{axis}", np.array([axis], np.int64))
    shifted = []
    for offset in range(3):
        start = graph.add_constant(f"offset.{offset}", np.array([offset], np.int64))
        end = graph.add("Add", [blocks, start], f"{value}.end.{offset}")
        shifted.append(graph.add("Slice", [value, start, end, along], f"{value}.shifted.{offset}"))
    return graph.add("Concat", shifted, f"{value}.near", axis=axis + 1)


def _read_dense(tensors: Tensors, linear: Linear, name: str) -> Dense:
    weight = read_floats(tensors, f"{name}.weight")
    return make_dense(linear, name, weight, _read_bias(tensors, name, len(weight)))


def _read_bias(tensors: Tensors, name: str, size: int) -> Floats:
    """Return a bias, zeros where the checkpoint has none."""
    bias = tensors.get(f"{name}.bias")
    return np.zeros(size, np.float32) if bias is None else bias.astype(np.float32)


def _read_layers(config: dict[str, Any]) -> tuple[str, ...]:
    """Return the kind of each layer, as newer configurations list them or older ones say by an interval."""
    count = int(config["num_hidden_layers"])
    if (kinds := config.get("layer_types")) is not None:
        if len(kinds) != count:
            raise ModelBroken(f"config.json has {count} layers and kinds of {len(kinds)}.")
        return tuple(map(str, kinds))
    interval = int(config.get("global_attn_every_n_layers", USUAL_INTERVAL))
    return tuple(SLIDING if number % interval else FULL for number in range(count))


def _read_thetas(config: dict[str, Any]) -> dict[str, float]:
    """Return the base of the rotary positions of each kind of layer; raise ModelBroken for stretched positions."""
    kinds = config.get("rope_parameters") or {}
    every = config.get("global_rope_theta", USUAL_GLOBAL_THETA)
    near = config.get("local_rope_theta", USUAL_LOCAL_THETA)
    usual = {FULL: every, SLIDING: every if near is None else near}
    chosen = {kind: kinds.get(kind) or {} for kind in usual}
    types = {str(entry.get("rope_type", "default")) for entry in chosen.values()}
    if config.get("rope_scaling") or types != {"default"}:
        raise ModelBroken("config.json asks for stretched rotary positions; only plain ones can be converted.")
    return {kind: float(entry.get("rope_theta") or usual[kind]) for kind, entry in chosen.items()}
