"""The configuration file: one Struct per section; each field has a default and, as text beside its type, a meaning.

`config.toml` may leave out anything. An unknown section, an unknown setting or an invalid value is an error, with which
the daemon does not start. The module imports nothing beyond msgspec, so that memctl can show the effective
configuration without the daemon.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from memoryd.client.errors import Invalid
from memoryd.client.offline import is_offline
from memoryd.client.projects.roots import is_name, is_pattern
from memoryd.client.transport import ssh
from memoryd.client.transport.postgres.connection import is_address
from memoryd.client.validation import explain_misfit

PositiveInt = Annotated[int, Meta(ge=1)]
NonNegativeInt = Annotated[int, Meta(ge=0)]
UnitShare = Annotated[float, Meta(ge=0.0, le=1.0)]
Duration = Annotated[float, Meta(gt=0.0)]
NonNegativeFloat = Annotated[float, Meta(ge=0.0)]


class NetworkConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What may leave this machine."""

    offline: Annotated[
        bool, "nothing does: no model is fetched, only servers on this machine are asked; also MEMORYD_OFFLINE=1"
    ] = False


class ModelConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The embedding model."""

    name: Annotated[str, "model of a new database; `memctl model use` changes it later"] = "all-MiniLM-L6-v2"
    folder: Annotated[str, "where models lie, relative to this file; empty: $MEMORYD_MODEL_DIR or the cache folder"] = (
        ""
    )
    fetch: Annotated[
        bool, "fetch a missing model in the background; false: searches use words alone until it is there"
    ] = True


class SearchConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Defaults of a search; a call may override them."""

    vector_weight: Annotated[
        UnitShare, "share of meaning in a score, the rest is words'; higher: paraphrases rank above exact names"
    ] = 0.7


class HooksConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What agents are shown automatically, at a session's start and beside a prompt."""

    start_tokens: Annotated[NonNegativeInt, "tokens at a session's start at most; 0: nothing"] = 1500
    prompt_lines: Annotated[NonNegativeInt, "lines beside a prompt at most; 0: none"] = 1
    prompt_floor: Annotated[
        UnitShare,
        "least confidence that a memory is about the prompt, to be shown; lower: more lines, less often right",
    ] = 0.3


class LlmConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A language model behind the OpenAI-compatible chat API; without one, rules do its work."""

    url: Annotated[str, "base address, such as http://127.0.0.1:11434/v1; empty: no model"] = ""
    model: Annotated[str, "name of the model at that address"] = ""
    key_env: Annotated[str, "environment variable that holds the key, if one is needed"] = "MEMORYD_LLM_KEY"
    key_file: Annotated[str, "file that holds the key, relative to this one; takes precedence over the variable"] = ""
    tokens_per_day: Annotated[NonNegativeInt, "tokens used in a UTC day at most; 0: no limit"] = 0


class CognitionConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What is derived from conversations in the background: summaries, and facts by a language model."""

    extract: Annotated[bool, "a language model extracts facts from observed turns"] = True


class EmbeddingApiConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Embedding models behind the OpenAI-compatible API: those whose names begin with `openai:`."""

    url: Annotated[str, "base address, such as http://127.0.0.1:11434/v1 for Ollama"] = "https://api.openai.com/v1"
    key_env: Annotated[str, "environment variable that holds the key, if one is needed"] = "OPENAI_API_KEY"
    key_file: Annotated[str, "file that holds the key, relative to this one; takes precedence over the variable"] = ""
    dimensions: Annotated[
        int, Meta(ge=0, le=16384), "dimensions of the vectors to request; 0: the server's default"
    ] = 0


class AccessConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Who is served."""

    require_token: Annotated[bool, "serve only connections that present a token; memctl uses the owner's"] = False
    sockets: Annotated[dict[str, str], "for sandboxes: path of a socket = name of its token"] = {}


class JobsConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Background jobs, and how much they keep."""

    enabled: Annotated[bool, "jobs run by themselves; false: only by hand"] = True
    every_s: Annotated[
        dict[str, NonNegativeFloat], "seconds between runs, by the name of a job; 0: it runs only by hand"
    ] = {}
    history_days: Annotated[NonNegativeFloat, "days for which operations can be undone; 0: for ever"] = 365.0
    backups: Annotated[
        NonNegativeInt, "copies of the database, made by the job `backup`, that are kept; 0: none are made"
    ] = 3


class StorageConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The database file."""

    max_size_mb: Annotated[
        NonNegativeInt,
        "from this size on nothing is added or changed; reads and deletes still work (the history of deletes may"
        " exceed the limit until the job `trim` removes it); 0: no limit",
    ] = 50_000


class TiersConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How turns and memories move through the tiers."""

    ring: Annotated[PositiveInt, "turns that L0 holds per namespace"] = 20
    promote_from: Annotated[UnitShare, "importance from which a turn that leaves L0 moves to L1"] = 0.5
    drop_unimportant: Annotated[
        bool, "drop the other turns, as published hierarchies do; false: they move to L2 and can be found"
    ] = False
    turn_days: Annotated[NonNegativeFloat, "days after which a turn that is not pinned is deleted; 0: never"] = 0.0
    recent_half_life_days: Annotated[Duration, "half-life of recency in L1"] = 7.0
    max_recent: Annotated[PositiveInt, "memories that L1 holds per namespace; the coldest move to L2"] = 2000
    max_facts: Annotated[
        NonNegativeInt, "memories that L2 holds per namespace; the weakest are deleted; 0: no limit"
    ] = 0


class ObserveConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What is recorded."""

    never: Annotated[list[str], "folders (from `/` or `~`) and namespaces in which no turn is ever recorded"] = []
    only: Annotated[
        list[str],
        "folders (from `/` or `~`) and namespaces outside of which no turn is recorded; []: no limit",
    ] = []


class LifetimeConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How long memories live that are neither pinned nor have a time of expiry of their own."""

    days: Annotated[
        dict[str, Duration],
        "days by source, such as `task_completion` or `session_summary`; memories of other sources live for ever",
    ] = field(default_factory=lambda: {"file_index": 30.0})


class PrivacyConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What is not stored."""

    secrets: Annotated[
        Literal["redact", "refuse", "allow"],
        "likely credentials are removed, make the call fail, or are stored",
    ] = "redact"
    allow: Annotated[list[str], "regular expressions; a credential that one of them matches as a whole is stored"] = []


class WorkspacesConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How Markdown files are read."""

    chunk_chars: Annotated[
        int, Meta(ge=100), "longest chunk of a file; all-MiniLM reads about 1000 characters of a text"
    ] = 1000
    overlap_chars: Annotated[NonNegativeInt, "a chunk repeats at most this much of the end of the one before it"] = 150
    local_dates: Annotated[bool, "`remember` names the day's file by the local date instead of that in UTC"] = False


class SharedConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """A shared root, whose memories are on one machine. `memctl shared` writes the section."""

    server: Annotated[
        str,
        "its machine, such as ssh://home or ssh://user@host:2222, or its database, postgresql://user@host/name;"
        " empty: this machine",
    ] = ""
    repositories: Annotated[
        list[str], "patterns of its repositories, such as github.com/acme/*; only their checkouts are in it"
    ] = []
    token: Annotated[str, "name of the token there; empty: the name of the root"] = ""
    memctl: Annotated[str, "the command that runs memctl there"] = "memctl"
    auto: Annotated[
        Literal["decisions", "all", "none"],
        "which saves are sent there automatically: decisions, rules, lessons and conventions; all; none",
    ] = "decisions"
    exclude: Annotated[list[str], "namespaces inside the root whose saves stay here"] = []


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """All sections."""

    model: ModelConfig = ModelConfig()
    search: SearchConfig = SearchConfig()
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
    privacy: PrivacyConfig = PrivacyConfig()
    network: NetworkConfig = NetworkConfig()
    shared: dict[str, SharedConfig] = {}


# Settings that are paths: a relative one starts from the folder of the configuration file.
_PATHS = (("model", "folder"), ("llm", "key_file"), ("embedding_api", "key_file"))


def load(path: Path) -> Config:
    """Read a configuration file; without a file return the defaults. Raise `Invalid` naming the field."""
    settings = _place(_read(path), path.parent)
    return msgspec.structs.replace(settings, network=NetworkConfig(offline=True)) if is_offline() else settings


def _read(path: Path) -> Config:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise Invalid(f"The configuration {path} cannot be read: {error.strerror}.") from None
    try:
        sections = tomllib.loads(text.decode())
        _refuse_unknown(sections)
        return _check(msgspec.convert(sections, Config))
    except msgspec.ValidationError as error:
        raise Invalid(f"The configuration {path} is wrong: {explain_misfit(error, Config)}.") from None
    except ValueError as error:
        raise Invalid(f"The configuration {path} is wrong: {error}.") from None


def _refuse_unknown(sections: dict[str, Any]) -> None:
    """Raise `ValueError` for an unknown section or setting; a misspelt limit must not go unnoticed."""
    known = {section: set(settings) for section, settings in msgspec.to_builtins(Config()).items()}
    for name in sections.get("shared", {}) if isinstance(sections.get("shared"), dict) else ():
        known[f"shared.{name}"] = set(SharedConfig.__struct_fields__)
    for section, settings in _list_sections(sections):
        if section not in known:
            raise ValueError(f"there is no section [{section}]{_suggest(section, known)}")
        for name in settings if isinstance(settings, dict) else ():
            if name not in known[section]:
                raise ValueError(f"there is no setting `{name}` in [{section}]{_suggest(name, known[section])}")


def _list_sections(sections: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the sections with their names; each shared root is a section of its own."""
    for section, settings in sections.items():
        if section == "shared" and isinstance(settings, dict):
            yield from ((f"shared.{name}", root) for name, root in settings.items())
        else:
            yield section, settings


def _suggest(name: str, known: Iterable[str]) -> str:
    matches = get_close_matches(name, sorted(known), n=1)
    return f" (did you mean `{matches[0]}`?)" if matches else ""


def _place(config: Config, folder: Path) -> Config:
    """Return the configuration with absolute paths, since the daemon changes its working directory."""
    for section, field_name in _PATHS:
        part = getattr(config, section)
        value = getattr(part, field_name)
        if value and not value.startswith(("/", "~")):
            part = msgspec.structs.replace(part, **{field_name: str(folder / value)})
            config = msgspec.structs.replace(config, **{section: part})
    return config


def _check(config: Config) -> Config:
    """Return the configuration; raise `ValueError` for an invalid value that types cannot express."""
    for pattern in config.privacy.allow:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"`privacy.allow`: {pattern!r} is not a regular expression ({error})") from None
    for root, settings in config.shared.items():
        if not is_name(root):
            raise ValueError(f"[shared.{root}]: the name of a root is a letter and up to 39 of a-z, 0-9 and _")
        if settings.server and not (ssh.is_address(settings.server) or is_address(settings.server)):
            raise ValueError(
                f"`shared.{root}.server`: write ssh://USER@HOST:PORT or, without a password,"
                " postgresql://USER@HOST:PORT/DATABASE"
            )
        for pattern in settings.repositories:
            if not is_pattern(pattern):
                raise ValueError(f"`shared.{root}.repositories`: {pattern!r} names no host and owner")
        for namespace in settings.exclude:
            if not namespace.startswith(f"{root}/"):
                raise ValueError(f"`shared.{root}.exclude`: {namespace!r} is not inside {root}")
    return config
