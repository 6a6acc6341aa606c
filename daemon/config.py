"""The configuration file: one Struct per section; each field has a default and, as text beside its type, a meaning.

`config.toml` may leave out anything; what it holds must be known and valid, or the daemon says what is wrong and does
not start. Nothing here imports more than msgspec, so the effective configuration can be shown without the daemon.
"""

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from memoryd.client.errors import Invalid
from memoryd.client.offline import is_offline

Count = Annotated[int, Meta(ge=1)]
Number = Annotated[int, Meta(ge=0)]
Fraction = Annotated[float, Meta(ge=0.0, le=1.0)]
Duration = Annotated[float, Meta(gt=0.0)]
Pause = Annotated[float, Meta(ge=0.0)]


class NetworkConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What may leave this machine."""

    offline: Annotated[
        bool, "nothing does: no model is fetched, only servers here are asked; also MEMORYD_OFFLINE=1"
    ] = False


class ServerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The socket's side."""

    workers: Annotated[Count, "threads for interactive calls"] = 4
    max_queued: Annotated[Count, "calls that may wait; past them a client gets busy"] = 256
    max_queued_bulk: Annotated[Count, "bulk calls that may wait"] = 16
    max_in_flight: Annotated[Count, "calls of one connection that are under way at once"] = 64
    max_connections: Annotated[Count, "open connections"] = 512
    slow_reader_s: Annotated[Duration, "a client that reads no reply for so long is dropped"] = 10.0
    drain_s: Annotated[Duration, "time for the calls under way at a stop"] = 2.0
    restart_for_upgrade: Annotated[bool, "restart when a newer version was installed and a client of it connects"] = (
        True
    )
    restart_after_s: Annotated[Duration, "a daemon younger than that does not restart by itself"] = 10.0


class ModelConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The embedding model."""

    name: Annotated[str, "model of a new database; `memctl model use` changes it later"] = "all-MiniLM-L6-v2"
    folder: Annotated[str, "where models lie, relative to this file; empty: $MEMORYD_MODEL_DIR or the cache folder"] = (
        ""
    )
    fetch: Annotated[bool, "fetch a missing model in the background"] = True
    query_cache: Annotated[Count, "query vectors kept in memory"] = 1024


class SearchConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Defaults of a search; a call may override them."""

    fusion: Annotated[Literal["weighted", "rrf"], "how the two are combined"] = "weighted"
    vector_weight: Annotated[Fraction, "share of the cosine in the weighted score"] = 0.7
    candidate_multiplier: Annotated[Count, "candidates per arm = this x limit, at least 50"] = 4
    max_postings: Annotated[Count, "postings that full text scores at most; the commonest words go first"] = 5_000_000
    embed_limit_s: Annotated[Duration, "longest wait for the query's vector without a deadline"] = 5.0
    traces: Annotated[Count, "retrievals kept for explain"] = 256


class ContextConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Contexts for prompts."""

    encoding: Annotated[str, "encoding of tiktoken that counts tokens; empty: the embedding model's tokenizer"] = ""
    given_days: Annotated[Duration, "what a session was given is remembered for so long"] = 30.0


class HooksConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What agents are told though they did not ask, at a session's start and beside a prompt."""

    start_tokens: Annotated[Number, "tokens at a session's start at most; 0: nothing"] = 400
    prompt_lines: Annotated[Number, "lines beside a prompt at most; 0: none"] = 3
    prompt_floor: Annotated[
        Fraction, "how sure it must be that a memory is about a prompt; lower: more comes up, and less often right"
    ] = 0.4
    only: Annotated[
        list[str], "only what is `pinned`, a `turn`, or of one of these types, such as decision; empty: all"
    ] = field(default_factory=list)


class LlmConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A language model behind the OpenAI-compatible chat API; without one, rules do its work."""

    url: Annotated[str, "base address, such as http://127.0.0.1:11434/v1; empty: no model"] = ""
    model: Annotated[str, "name of the model at that address"] = ""
    key_env: Annotated[str, "environment variable that holds the key, if one is needed"] = "MEMORYD_LLM_KEY"
    key_file: Annotated[str, "file that holds the key, relative to this one; takes precedence over the variable"] = ""
    timeout_s: Annotated[Duration, "longest wait for one answer"] = 60.0
    retries: Annotated[int, Meta(ge=0, le=10), "further attempts where a failure may pass"] = 2
    concurrency: Annotated[Count, "questions under way at once"] = 1
    tokens_per_day: Annotated[Number, "tokens used in a UTC day at most; 0: no limit"] = 0
    max_reply_tokens: Annotated[Count, "tokens of one answer at most"] = 1024


class CognitionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What is made of conversations in the background: summaries, and facts by a language model."""

    extract: Annotated[bool, "a language model draws facts out of what is observed"] = True
    quiet_s: Annotated[Duration, "a conversation is looked at after so long without a turn"] = 30.0
    longest_s: Annotated[Duration, "one that never rests is looked at after so long"] = 600.0
    min_confidence: Annotated[Fraction, "confidence from which a fact is kept"] = 0.7
    max_facts: Annotated[Number, "extracted facts kept per namespace; the weakest are deleted; 0: no limit"] = 500
    summary_after_s: Annotated[
        Pause, "a session is summed up after so long without a turn; 0: only when it is ended"
    ] = 600.0
    summary_tokens: Annotated[Count, "tokens of a session's summary, about"] = 200
    dream: Annotated[
        bool, "each night MEMORY.md is put in order with daily files, where `memctl dream --allow` was given"
    ] = True


class EmbeddingApiConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Embedding models behind the OpenAI-compatible API: those whose names begin with `openai:`."""

    url: Annotated[str, "base address, such as http://127.0.0.1:11434/v1 for Ollama"] = "https://api.openai.com/v1"
    key_env: Annotated[str, "environment variable that holds the key, if one is needed"] = "OPENAI_API_KEY"
    key_file: Annotated[str, "file that holds the key, relative to this one; takes precedence over the variable"] = ""
    dimensions: Annotated[
        int, Meta(ge=0, le=16384), "numbers per vector to ask for and to expect; 0: as the server answers"
    ] = 0
    timeout_s: Annotated[Duration, "longest wait for the vectors of a batch, in the background"] = 30.0
    wait_s: Annotated[Duration, "longest wait of a search or an add for its vector; then words alone, or the queue"] = (
        3.0
    )
    batch: Annotated[int, Meta(ge=1, le=2048), "texts of one request"] = 32
    retries: Annotated[int, Meta(ge=0, le=10), "further attempts in the background"] = 2
    max_tokens: Annotated[Count, "tokens that the model reads of a text; longer ones are cut"] = 8191


class AccessConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Who is served."""

    require_token: Annotated[bool, "serve only connections that present a token; memctl uses the owner's"] = False
    sockets: Annotated[dict[str, str], "for sandboxes: path of a socket = name of its token"] = {}


class JobsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Background jobs and what they keep."""

    enabled: Annotated[bool, "jobs run by themselves; false: only when asked to"] = True
    first_after_s: Annotated[Pause, "time from the start to the first run"] = 15.0
    every_s: Annotated[dict[str, Pause], "seconds between runs by the name of a job; 0: only when asked to"] = {}
    failures: Annotated[Count, "failures in a row after which a job waits for `memctl jobs resume`"] = 5
    backoff_s: Annotated[Duration, "pause after a failure; doubled with each further one"] = 60.0
    slice_ms: Annotated[Duration, "aim for the time that a job holds the writer at once"] = 5.0
    slice_limit_s: Annotated[Duration, "a run whose slice took longer is interrupted"] = 5.0
    keep_runs: Annotated[Count, "runs of each job in its history"] = 500
    history_days: Annotated[Pause, "operations can be undone for so long; 0: for ever"] = 365.0
    history_operations: Annotated[Count, "operations in the history at most"] = 1_000_000
    vectors_days: Annotated[Pause, "a vector that nothing uses is kept for so long"] = 30.0
    backups: Annotated[Number, "copies of the database that are kept; 0: none are made"] = 3


class StorageConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The database file."""

    max_size_mb: Annotated[
        Number,
        "at this size nothing more is added or changed; reads and deletes go on (their history may take the file over"
        " it until `trim` forgets it); 0: no limit",
    ] = 50_000


class TiersConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How turns and memories move through the tiers."""

    ring: Annotated[Count, "turns that L0 holds per namespace"] = 20
    promote_from: Annotated[Fraction, "importance from which a turn that leaves L0 moves to L1"] = 0.5
    drop_unimportant: Annotated[
        bool, "drop the other turns as published hierarchies do; false: they go to L2 and are found"
    ] = False
    quiet_h: Annotated[Duration, "turns of a namespace that was quiet for so long leave L0"] = 24.0
    turn_days: Annotated[Pause, "days after which a turn that is not pinned is deleted; 0: never"] = 0.0
    max_turns: Annotated[Number, "turns kept per namespace; the weakest of low importance are deleted; 0: no limit"] = 0
    skipped: Annotated[Count, "turns listed as not kept, per namespace"] = 1000
    pair_within_s: Annotated[Duration, "an answer belongs to a question at most so much older"] = 900.0
    recent_half_life_days: Annotated[Duration, "half-life of recency in L1"] = 7.0
    registry_half_life_days: Annotated[Duration, "half-life of recency in L2"] = 30.0
    cold_below: Annotated[Fraction, "recency below which a memory leaves L1"] = 0.2
    cold_after_s: Annotated[Duration, "no memory leaves L1 for its age before that"] = 300.0
    max_recent: Annotated[Count, "memories that L1 holds per namespace; the coldest go on to L2"] = 2000
    max_facts: Annotated[Number, "memories that L2 holds per namespace; the weakest are deleted; 0: no limit"] = 0


class ObserveConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What is taken note of."""

    never: Annotated[list[str], "folders (from `/` or `~`) and namespaces in which no turn is ever taken note of"] = []


class LifetimeConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How long memories live that are neither pinned nor added with a time of expiry."""

    preset: Annotated[
        Literal["", "swarm"],
        "swarm: outcomes of tasks live for 7 days and summaries of sessions for 3, unless `days` says",
    ] = ""
    days: Annotated[dict[str, Annotated[float, Meta(gt=0.0)]], "days by source; other sources live for ever"] = field(
        default_factory=lambda: {"file_index": 30.0}
    )
    grace_days: Annotated[Pause, "expired memories stay readable by id for so long before they are deleted"] = 30.0

    def days_of(self, source: str) -> float | None:
        """Return how many days what came from a source lives, None for ever."""
        return self.days.get(source, _PRESETS[self.preset].get(source))


_PRESETS: dict[str, dict[str, float]] = {"": {}, "swarm": {"task_completion": 7.0, "session_summary": 3.0}}


class PrivacyConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What is not stored."""

    secrets: Annotated[
        Literal["redact", "refuse", "allow"],
        "likely credentials are taken out, make a call fail, or are stored like anything else",
    ] = "redact"
    allow: Annotated[list[str], "regular expressions; a credential that one matches whole is let through"] = []


class MetricsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Figures for a monitoring system."""

    textfile: Annotated[
        str, "file written for node_exporter's textfile collector, absolute, ending in .prom; empty: none"
    ] = ""
    every_s: Annotated[Duration, "seconds between two versions of that file"] = 15.0


class WorkspacesConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How Markdown files are read."""

    chunk_chars: Annotated[
        int, Meta(ge=100), "longest chunk of a file; 1000 characters are what all-MiniLM reads of a text"
    ] = 1000
    overlap_chars: Annotated[Number, "a chunk begins with at most so much of the end of the one before it"] = 150
    max_file_bytes: Annotated[Count, "a larger file is not read; `memctl workspace status` names it"] = 16 * 1024 * 1024
    local_dates: Annotated[bool, "`remember` names the day's file by the local date instead of that in UTC"] = False
    scan_every_s: Annotated[Duration, "a folder whose changes the system does not report is scanned so often"] = 5.0


class SharedConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A root that is shared with other machines: `[shared.acme]`. `memctl shared add acme` begins it."""

    server: Annotated[str, "address of the PostgreSQL server, without a password; empty: as it was added"] = ""
    passfile: Annotated[str, "file with its password, relative to this one; empty: as it was added, or ~/.pgpass"] = ""
    poll_s: Annotated[Duration, "the server is asked for changes so often"] = 2.0
    listen: Annotated[bool, "let the server report changes at once as well, where it can"] = True
    max_rows: Annotated[Number, "memories of it kept here; searches ask for the rest. 0: all"] = 0


class LogConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The log that a daemon writes which a client started; under systemd the journal keeps it."""

    max_mb: Annotated[Duration, "size at which a new file is begun"] = 5.0
    files: Annotated[int, Meta(ge=2), "files that are kept, the present one among them"] = 3


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """All sections."""

    server: ServerConfig = ServerConfig()
    model: ModelConfig = ModelConfig()
    search: SearchConfig = SearchConfig()
    context: ContextConfig = ContextConfig()
    hooks: HooksConfig = HooksConfig()
    observe: ObserveConfig = ObserveConfig()
    tiers: TiersConfig = TiersConfig()
    storage: StorageConfig = StorageConfig()
    llm: LlmConfig = LlmConfig()
    embedding_api: EmbeddingApiConfig = EmbeddingApiConfig()
    cognition: CognitionConfig = CognitionConfig()
    lifetime: LifetimeConfig = LifetimeConfig()
    jobs: JobsConfig = JobsConfig()
    access: AccessConfig = AccessConfig()
    workspaces: WorkspacesConfig = WorkspacesConfig()
    metrics: MetricsConfig = MetricsConfig()
    privacy: PrivacyConfig = PrivacyConfig()
    network: NetworkConfig = NetworkConfig()
    log: LogConfig = LogConfig()
    shared: dict[str, SharedConfig] = {}


# Settings that are paths: a relative one is beside the file that it is in.
_PATHS = (("model", "folder"), ("llm", "key_file"), ("embedding_api", "key_file"))


def load(path: Path) -> Config:
    """Read a configuration file; one that does not exist gives the defaults. Raise `Invalid` naming the field."""
    found = _place(_read(path), path.parent)
    return msgspec.structs.replace(found, network=NetworkConfig(offline=True)) if is_offline() else found


def _read(path: Path) -> Config:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise Invalid(f"The configuration {path} cannot be read: {error.strerror}.") from None
    try:
        return _check(msgspec.toml.decode(text, type=Config))
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        raise Invalid(f"The configuration {path} is wrong: {error}.") from None


def _place(config: Config, folder: Path) -> Config:
    """Return the configuration with absolute paths: the daemon does not stay where it was started."""
    for section, field_name in _PATHS:
        part = getattr(config, section)
        value = getattr(part, field_name)
        if value and not value.startswith(("/", "~")):
            part = msgspec.structs.replace(part, **{field_name: str(folder / value)})
            config = msgspec.structs.replace(config, **{section: part})
    return msgspec.structs.replace(config, shared={n: _place_passfile(s, folder) for n, s in config.shared.items()})


def _place_passfile(shared: SharedConfig, folder: Path) -> SharedConfig:
    given = shared.passfile
    return msgspec.structs.replace(shared, passfile=str(folder / Path(given).expanduser()) if given else "")


def _check(config: Config) -> Config:
    """Return the configuration; raise `ValueError` for what types cannot check."""
    for pattern in config.privacy.allow:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is not a regular expression ({error}) - at `$.privacy.allow`") from None
    textfile = config.metrics.textfile
    if textfile and not (textfile.endswith(".prom") and textfile.startswith(("/", "~"))):
        raise ValueError(f"{textfile!r} is not an absolute path ending in .prom - at `$.metrics.textfile`")
    return config
