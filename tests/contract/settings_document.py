"""Write docs/settings.md from the configuration: python tests/contract/settings_document.py > docs/settings.md"""

from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec
from msgspec import inspect as types

from memoryd.daemon.config import Config

VARIABLES = {
    "MEMORYD_SOCKET": "the socket; a path of at most 107 bytes",
    "MEMORYD_DATA_DIR": "the folder of the database and the log",
    "MEMORYD_CONFIG": "the configuration file",
    "MEMORYD_NAMESPACE": "the namespace of a client: `acme/api`, say, or `/` for the root; unset: that of the project",
    "MEMORYD_TOKEN": "the token that a client presents; set but empty is refused",
    "MEMORYD_MODEL_DIR": "the folder of embedding models. A daemon that a hook starts knows only what the agent was"
    " started with: `folder` in `[model]` holds for all",
    "MEMORYD_OBSERVE": "when `off`, the hooks of coding agents send no turns and pause the session",
    "MEMORYD_OFFLINE": "when set, nothing leaves this machine, as with `offline` in `[network]`",
    "MEMORYD_LLM_KEY": "the key of the language model, unless `[llm]` names another variable or a file",
    "NO_COLOR": "when set, memctl uses no colours",
}

# What people want, what they write into the file, what they notice then.
WISHES = (
    (
        "sessions begin with less",
        "[hooks] start_tokens = 200",
        "the least important lines are left out",
    ),
    ("nothing is shown beside prompts", "[hooks] prompt_lines = 0", "a prompt goes to the agent as you typed it"),
    ("more is shown beside prompts", "[hooks] prompt_floor = 0.2", "more lines, and less often right"),
    (
        "a folder is private",
        '[observe] never = ["~/private"]',
        "nothing said there is recorded; `memctl observe status` lists it",
    ),
    (
        "one project alone is recorded",
        '[observe] only = ["~/code/api"]',
        "nothing said elsewhere is recorded; `memctl observe status` says so",
    ),
    (
        "old turns are deleted",
        "[tiers] turn_days = 365",
        "turns of more than a year ago are gone, but for pinned ones",
    ),
    ("a model makes facts", '[llm] url = "http://127.0.0.1:11434/v1"', "with `model`: facts appear beside turns"),
    ("meaning counts more than words", "[search] vector_weight = 0.8", "paraphrases come first, exact names later"),
    ("nothing goes to the network", "[network] offline = true", "no model is fetched, servers elsewhere are not asked"),
    ("the file stays small", "[jobs] history_days = 90", "older changes cannot be undone; the job `trim` makes room"),
    ("agents need a token", "[access] require_token = true", "programs without one are refused; `memctl` is not"),
)

HEAD = """# Settings

Generated from `daemon/config.py` by `make protocol`; do not edit.

You need none of these: what is left out has its default. To change one, write it into `~/.config/memoryd/config.toml`
(`memctl config path` prints where the file is):
```toml title="~/.config/memoryd/config.toml"
[hooks]
start_tokens = 200
```
Then restart the daemon; no call fails meanwhile. `memctl config show` prints what is in force:
```sh
memctl up --restart
```
With an unknown name or a value out of range the daemon does not start; it says which, and so does
`memctl doctor configuration`.

## What people change
| you want | write | and notice |
|---|---|---|
"""


def document() -> str:
    """Return the page."""
    wishes = "".join(f"| {wish} | `{line}` | {notice} |\n" for wish, line, notice in WISHES)
    return "\n".join([HEAD + wishes, *_sections(), *_variables()])


def _sections() -> Iterator[str]:
    yield "## All settings\n"
    yield "| setting | default | allowed | what it does |\n|---|---|---|---|"
    described: Any = types.type_info(Config)
    for part in described.fields:
        section, name = part.type, part.name
        if isinstance(section, types.DictType):  # a section per name
            section, name = section.value_type, f"{name}.NAME"
        yield f"| **`[{name}]`** | | | **{str(section.cls.__doc__).splitlines()[0]}** |"
        meanings = get_type_hints(section.cls, include_extras=True)
        for field in section.fields:
            value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
            meaning = next(meta for meta in meanings[field.name].__metadata__ if isinstance(meta, str))
            meaning = meaning.replace("|", "\\|")
            yield f"| `{field.name}` | `{_toml(value)}` | {_allowed(field.type)} | {meaning} |"
    yield ""


def _allowed(kind: Any) -> str:
    """Return which values a setting may have."""
    if isinstance(kind, types.Metadata):
        return _allowed(kind.type)
    if isinstance(kind, types.LiteralType):
        return ", ".join(f"`{_toml(value)}`" for value in kind.values)
    if isinstance(kind, types.IntType | types.FloatType):
        least = f"from {kind.ge:g}" if kind.ge is not None else f"over {kind.gt:g}" if kind.gt is not None else ""
        most = f"to {kind.le:g}" if kind.le is not None else ""
        return " ".join(filter(None, [least, most])) or "a number"
    names = {
        types.BoolType: "`true`, `false`",
        types.StrType: "text",
        types.ListType: "a list",
        types.DictType: "a table",
    }
    return names[type(kind)]


def _toml(value: Any) -> str:
    """Return a default as it is written in the file."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(one)}" for name, one in value.items()) + " }" if value else "{}"
    return msgspec.json.encode(value).decode()


def _variables() -> Iterator[str]:
    yield "## Environment\n"
    yield "| variable | meaning |\n|---|---|"
    yield from (f"| `{name}` | {meaning} |" for name, meaning in VARIABLES.items())
    yield ""


if __name__ == "__main__":
    print(document(), end="")
