"""The configuration file: one Struct per section, a default and a meaning for each field.

`config.toml` may leave out anything; what it holds must be known and valid, or the daemon says what is wrong and does
not start. Nothing here imports more than msgspec, so the effective configuration can be shown without the daemon.
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from memoryd.client.errors import Invalid

Count = Annotated[int, Meta(ge=1)]
Fraction = Annotated[float, Meta(ge=0.0, le=1.0)]
Duration = Annotated[float, Meta(gt=0.0)]


class ServerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The socket's side."""

    workers: Annotated[Count, Meta(description="threads for interactive calls")] = 4
    max_queued: Annotated[Count, Meta(description="calls that may wait; past them a client gets busy")] = 256
    max_queued_bulk: Annotated[Count, Meta(description="bulk calls that may wait")] = 16
    max_in_flight: Annotated[Count, Meta(description="calls of one connection that are under way at once")] = 64
    max_connections: Annotated[Count, Meta(description="open connections")] = 512
    slow_reader_s: Annotated[Duration, Meta(description="a client that reads no reply for so long is dropped")] = 10.0
    drain_s: Annotated[Duration, Meta(description="time for the calls under way at a stop")] = 10.0


class ModelConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The embedding model."""

    name: Annotated[str, Meta(description="model of a new database; `memctl model use` changes it later")] = (
        "all-MiniLM-L6-v2"
    )
    folder: Annotated[str, Meta(description="where models lie; empty: $MEMORYD_MODEL_DIR or the cache folder")] = ""
    fetch: Annotated[bool, Meta(description="fetch a missing model in the background")] = True
    query_cache: Annotated[Count, Meta(description="query vectors kept in memory")] = 1024


class SearchConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Defaults of a search; a call may override them."""

    fusion: Annotated[Literal["weighted", "rrf"], Meta(description="how the two are combined")] = "weighted"
    vector_weight: Annotated[Fraction, Meta(description="share of the cosine in the weighted score")] = 0.7
    candidate_multiplier: Annotated[Count, Meta(description="candidates per arm = this x limit, at least 50")] = 4
    max_postings: Annotated[
        Count, Meta(description="rows that full text scores at most; the commonest words go first")
    ] = 20_000
    embed_limit_s: Annotated[Duration, Meta(description="longest wait for the query's vector without a deadline")] = 5.0
    traces: Annotated[Count, Meta(description="retrievals kept for explain")] = 256


class AccessConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Who is served."""

    require_token: Annotated[
        bool, Meta(description="serve only connections that present a token; memctl uses the owner's")
    ] = False


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """All sections."""

    server: ServerConfig = ServerConfig()
    model: ModelConfig = ModelConfig()
    search: SearchConfig = SearchConfig()
    access: AccessConfig = AccessConfig()


def load(path: Path) -> Config:
    """Read a configuration file; one that does not exist gives the defaults. Raise `Invalid` naming the field."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise Invalid(f"The configuration {path} cannot be read: {error.strerror}.") from None
    try:
        return msgspec.toml.decode(text, type=Config)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        raise Invalid(f"The configuration {path} is wrong: {error}.") from None
