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
    "MEMORYD_TOKEN": "the token that a client presents",
    "MEMORYD_MODEL_DIR": "the folder of embedding models",
    "MEMORYD_OBSERVE": "when `off`, the hooks of coding agents send no turns",
    "MEMORYD_OFFLINE": "when set, nothing leaves this machine, as with `offline` in `[network]`",
    "MEMORYD_LLM_KEY": "the key of the language model, unless `[llm]` names another variable or a file",
    "NO_COLOR": "when set, memctl uses no colours",
}

HEAD = """# Settings

Generated from `daemon/config.py` by `make protocol`; do not edit.

`~/.config/memoryd/config.toml` need not exist; a setting that is left out has the default that is given here. The file
is TOML: sections in brackets, then `name = value`. A name that is not known or a value out of range keeps the daemon
from starting, and it says which; former settings are ignored, with a warning in the log. A change takes effect at the
next start: `memctl down`, `memctl up`.
`memctl config show` prints the settings in force, `memctl config path` where the file is.
"""


def document() -> str:
    """Return the page."""
    return "\n".join([HEAD, *_sections(), *_variables()])


def _sections() -> Iterator[str]:
    described: Any = types.type_info(Config)
    for part in described.fields:
        is_named = isinstance(part.type, types.DictType)  # one section for each name, such as [shared.acme]
        section = part.type.value_type if is_named else part.type
        yield f"## [{part.name}{'.NAME' * is_named}]\n"
        yield str(section.cls.__doc__).splitlines()[0] + "\n"
        yield "| setting | default | meaning |\n|---|---|---|"
        meanings = get_type_hints(section.cls, include_extras=True)
        for field in section.fields:
            value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
            meaning = next(meta for meta in meanings[field.name].__metadata__ if isinstance(meta, str))
            yield f"| `{field.name}` | `{_toml(value)}` | {meaning.replace('|', chr(92) + '|')} |"
        yield ""


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
