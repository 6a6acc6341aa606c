"""Print docs/mcp.md with tools, prompts and resources written anew: python tests/contract/mcp_document.py

The page is written by hand but for what is between `<!-- NAME -->` and `<!-- end of NAME -->`.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryd.client.programs.mcp import resources, schemas
from memoryd.client.programs.mcp.prompts import PROMPTS
from memoryd.client.programs.mcp.tools import CONNECTOR_TOOLS, TOOLS, Tool

PAGE = Path(__file__).parents[2] / "docs" / "mcp.md"

_PLAIN = {  # arguments that an agent understands without a word
    "id": "id, or its first digits as replies show them",
    "limit": "how many at most",
    "query": "what to look for, in plain words",
    "tags": "words to find it by",
}

_EVERYWHERE = ("project",)  # the page says once what this is


def document() -> str:
    """Return the text of the page."""
    text = PAGE.read_text()
    parts = {
        "tools": _list_tools(TOOLS),
        "connector tools": _list_tools(CONNECTOR_TOOLS),
        "prompts": _list_prompts(),
        "resources": _list_resources(),
    }
    for name, lines in parts.items():
        pattern = rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)"
        text, number = re.subn(pattern, lambda _, lines=lines: "\n".join([*lines, ""]), text, flags=re.DOTALL)  # type: ignore[misc]
        assert number == 1, name
    return text


def _list_tools(tools: Mapping[str, Tool]) -> Iterator[str]:
    for name, tool in tools.items():
        yield f"### {name}\n{tool.description}"
        schema = schemas.schema(tool.takes)
        for field, about in schema["properties"].items():
            if field in _EVERYWHERE:
                continue
            default = ", required" if field in schema.get("required", ()) else _format_default(about.get("default"))
            yield f"- `{field}` ({_format_type(about)}{default}): {about.get('description') or _PLAIN[field]}"
        yield f"- Returns {_describe_result(tool)} {_describe_effect(tool)}\n"


def _format_type(about: dict[str, Any]) -> str:
    if "enum" in about:
        return " or ".join(f"`{value}`" for value in about["enum"])
    kind = {"array": "list of texts", "string": "text", "object": "object"}.get(about["type"], about["type"])
    if "minimum" in about and "maximum" in about:
        kind += f" {about['minimum']} to {about['maximum']}"
    return f"{kind}, at most {about['maxItems']}" if "maxItems" in about else kind


def _format_default(value: object) -> str:
    return "" if value in ("", None, [], {}) else f", `{str(value).lower() if isinstance(value, bool) else value}`"


def _describe_result(tool: Tool) -> str:
    if tool.returns is None:
        return "text."
    schema = schemas.schema(tool.returns)
    parts = []
    for name, about in schema["properties"].items():
        inner = about.get("items", {}).get("$ref", "").rpartition("/")[2]
        fields = ", ".join(f"`{field}`" for field in schema["$defs"][inner]["properties"]) if inner else ""
        parts.append(f"`{name}` (each: {fields})" if fields else f"`{name}`")
    return f"text, and as structured content {', '.join(parts)}."


def _describe_effect(tool: Tool) -> str:
    if tool.reads_only:
        return "Changes nothing."
    return "Changes what is there; `memctl undo` takes it back." if tool.destroys else "Adds to what is there."


def _list_prompts() -> Iterator[str]:
    yield "| prompt | argument | |\n|---|---|---|"
    for name, prompt in PROMPTS.items():
        yield f"| `{name}` | `{prompt.argument}`: {prompt.about} | {prompt.description} |"


def _list_resources() -> Iterator[str]:
    yield "| address | |\n|---|---|"
    for name, shelf in resources.SHELVES.items():
        yield f"| `{resources.uri(name)}` | {shelf.description} |"


if __name__ == "__main__":
    print(document(), end="")
