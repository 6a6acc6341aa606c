"""Arguments and results of the tools, and their JSON schemas. These are simple, since not all hosts support more."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from memoryd.client.errors import Invalid
from memoryd.client.validation import explain_misfit

MIN_TOKENS, MAX_TOKENS = 128, 20_000
MOST_IDS = 20
Budget = Annotated[int, Meta(ge=MIN_TOKENS, le=MAX_TOKENS, description="budget of the reply in tokens")]
Id = Annotated[str, Meta(min_length=4)]
Ids = Annotated[list[Id], Meta(max_length=MOST_IDS, description="ids, or their first digits as replies show them")]
Where = Annotated[
    dict[str, Any],
    Meta(description='conditions on metadata, like {"status": "done"} or {"score": {"$lt": 2}}; $and, $or, $not join'),
]
ProjectName = Annotated[str, Meta(description="another namespace, like acme/api, or / for what all projects share")]
S = TypeVar("S", bound=Struct)


class Arguments(Struct, forbid_unknown_fields=True):
    """Base of the arguments of a tool."""


class Save(Arguments, kw_only=True):
    """Arguments of memory_save."""

    content: Annotated[
        str, Meta(min_length=1, description="one thing, in a sentence that is understood without this conversation")
    ]
    kind: Annotated[
        str, Meta(min_length=1, description="fact, decision, preference, lesson, correction, debugging …")
    ] = "fact"
    tags: Annotated[list[str], Meta(max_length=32)] = []
    project: ProjectName = ""
    expires_at: Annotated[str, Meta(description="ISO 8601 date after which it is of no use; left out: never")] = ""
    supersedes: Annotated[
        Ids,
        Meta(description="ids of memories that do not hold any more because this one does, such as a former decision"),
    ] = []


class SearchArguments(Arguments, kw_only=True):
    """Arguments of memory_search."""

    query: Annotated[str, Meta(min_length=1, description="what to look for, in plain words")]
    limit: Annotated[int, Meta(ge=1, le=50)] = 8
    project: ProjectName = ""
    since: Annotated[str, Meta(description="only memories from this date on: ISO 8601, or like yesterday")] = ""
    until: Annotated[str, Meta(description="only memories up to and including this date")] = ""
    where: Where = {}
    max_tokens: Budget = 1500


class GetMany(Arguments, kw_only=True):
    """Arguments of memory_get."""

    ids: Annotated[Ids, Meta(min_length=1)]
    project: ProjectName = ""
    max_tokens: Budget = 4000


class UpdateArguments(Arguments, kw_only=True):
    """Arguments of memory_update."""

    id: Id
    content: Annotated[str, Meta(description="the new text")] = ""
    feedback: Annotated[
        Literal["useful", "useless"] | UnsetType,
        Meta(description="whether it helped; it ranks higher or lower from then on"),
    ] = UNSET
    project: ProjectName = ""


class ForgetArguments(Arguments, kw_only=True):
    """Arguments of memory_forget."""

    ids: Ids = []
    query: Annotated[str, Meta(description="instead of ids: show what this finds, to choose from")] = ""
    dry_run: Annotated[bool, Meta(description="only show what would be forgotten")] = True
    project: ProjectName = ""


class ContextArguments(Arguments, kw_only=True):
    """Arguments of memory_context."""

    task: Annotated[str, Meta(min_length=1, description="what is to be done, in plain words")]
    max_tokens: Budget = 800
    project: ProjectName = ""


class OneQuery(Arguments, kw_only=True):
    """Arguments of search."""

    query: Annotated[str, Meta(min_length=1)]


class OneId(Arguments, kw_only=True):
    """Arguments of fetch."""

    id: Id


# Results --------------------------------------------------------------------------------------------------------------


class Saved(Struct, kw_only=True):
    """Outcome of memory_save; `merged` means that the same memory was stored already.

    `nearest` is the most similar saved memory, which this one may replace. `redacted` counts the credentials that were
    removed before storing, by kind.
    """

    id: str
    outcome: Literal["created", "merged"]
    namespace: str
    disagrees_with: list[str] = []
    nearest: str = ""
    redacted: dict[str, int] = {}


class FoundMemory(Struct, kw_only=True, omit_defaults=True):
    """A memory with its text on one line, shortened if it is long; `date` is the day on which it was stored.

    `namespace` is omitted if it is the requested one, and `/` for memories that all projects share. `confidence` of a
    search result: likely, maybe or a guess. `later`: a later statement that seems to change it.
    """

    id: str
    date: str
    kind: str
    source: str
    text: str
    namespace: str = ""
    confidence: str = ""
    disagrees_with: list[str] = []
    later: str = ""


class FoundMany(Struct, kw_only=True):
    """Outcome of memory_search, best first. `omitted` counts results that did not fit into the budget."""

    memories: list[FoundMemory]
    omitted: int = 0


class Whole(Struct, kw_only=True, omit_defaults=True):
    """A memory with its whole text, or a cut one if `cut_from`, the number of characters of the whole, is set."""

    id: str
    date: str
    updated: str
    kind: str
    namespace: str
    source: str
    content: str
    tags: list[str] = []
    expires: str = ""
    superseded_by: str = ""
    later: str = ""
    cut_from: int = 0


class GotMany(Struct, kw_only=True):
    """Outcome of memory_get. `problems` has one sentence for each id that is not shown."""

    memories: list[Whole]
    problems: list[str] = []


class Updated(Struct, kw_only=True):
    """Outcome of memory_update; `operations` are for `memctl undo`."""

    id: str
    operations: list[str]
    redacted: dict[str, int] = {}


class ForgottenMany(Struct, kw_only=True):
    """Outcome of memory_forget: the memories that were, or would be, deleted; `operation` is for `memctl undo`."""

    dry_run: bool
    memories: list[FoundMemory]
    operation: str | None = None


class SearchResult(Struct, kw_only=True):
    """One result of search."""

    id: str
    title: str
    url: str


class Pages(Struct, kw_only=True):
    """Outcome of search."""

    results: list[SearchResult]


class FetchedDocument(Struct, kw_only=True):
    """Outcome of fetch."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str] = {}


# Schemas --------------------------------------------------------------------------------------------------------------


def schema(shape: type[Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a struct, an object at its root."""
    _, parts = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    root = _simplify(parts.pop(shape.__name__))
    return {**root, "$defs": {name: _simplify(part) for name, part in parts.items()}} if parts else root


def _simplify(part: dict[str, Any]) -> dict[str, Any]:
    """Remove titles and descriptions, which come from our classes, and give enums a type, which some hosts require."""
    kept = {name: value for name, value in part.items() if name not in ("title", "description")}
    for field in kept.get("properties", {}).values():
        if "enum" in field:
            field["type"] = "string"
    return kept


def parse_arguments(shape: type[S], arguments: Mapping[str, Any] | None) -> S:
    """Parse the arguments of a tool; raise `Invalid`.

    Models make mistakes, so null counts as omitted, a number or JSON in quotes is decoded, and one id becomes a list.
    """
    present = {name: value for name, value in (arguments or {}).items() if value is not None}
    kinds = {"array": list, "object": dict}
    for name, field in schema(shape)["properties"].items():
        if (kind := kinds.get(field.get("type"))) and isinstance(text := present.get(name), str):
            with suppress(msgspec.DecodeError, RecursionError):
                present[name] = value if isinstance(value := msgspec.json.decode(text), kind) else text
            if name in ("ids", "supersedes") and present[name] is text:
                present[name] = [text]
    try:
        return msgspec.convert(present, shape, strict=False)
    except msgspec.ValidationError as error:
        names = ", ".join(shape.__struct_fields__)
        raise Invalid(f"The arguments do not fit: {explain_misfit(error, shape)}; there are {names}.") from None
