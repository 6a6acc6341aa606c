"""The tools: one row each in `TOOLS`, with its function. They are few, since descriptions cost every agent tokens."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from memoryd.client import calls, methods
from memoryd.client.confidence import FLOOR
from memoryd.client.errors import AmbiguousId, Invalid, MemorydError, NotFound
from memoryd.client.programs.mcp import schemas
from memoryd.client.programs.mcp.answers import (
    ID_DIGITS,
    ROOT,
    ToolResult,
    fit_answer,
    frame_lines,
    memory_line,
    shorten_text,
    show_memories,
    tell_later,
    tell_opposites,
)
from memoryd.client.programs.mcp.session import ProjectSession
from memoryd.client.programs.memctl.link import describe_credentials
from memoryd.client.prompt_text import describe_origin, make_inert, make_lines_inert
from memoryd.client.protocol import Get, Memory, Redacted
from memoryd.client.protocol.base import SAVED_FROM
from memoryd.client.times import iso, moment, seconds

SOURCE = "mcp"
FORGET_BUDGET, FORGET_LIMIT = 1500, 10
_DAY_S = 86400.0
_DATE_CHARS = 10
_HEAD_TOKENS = 60  # reserved for the other fields of a memory, in memory_get
URL = "memory://memory/"
_TITLE_CHARS = 120
_TITLES_TOKENS = 1500
_PARTS = (1, 2, 4, 8)  # divisors of a text's limit, tried in order


class Tool(NamedTuple):
    """A tool as an agent sees it, and the function that runs it; `returns` is None if the result is text only."""

    title: str
    description: str
    takes: type[schemas.Arguments]
    returns: type[Struct] | None
    run: Callable[[ProjectSession, Any], Awaitable[ToolResult]]
    reads_only: bool = True
    destroys: bool = False


_REPLACES = "If that does not hold any more, save this once more with its id in supersedes."


async def _save(session: ProjectSession, arguments: schemas.Save) -> ToolResult:
    if arguments.expires_at and seconds(arguments.expires_at) <= time.time():
        raise Invalid(f"expires_at {arguments.expires_at!r} is past, so nothing would be found of it.")
    metadata: dict[str, Any] = {"tags": arguments.tags} if arguments.tags else {}
    if session.place(arguments.project) != session.namespace:
        metadata[SAVED_FROM] = session.namespace or ROOT
    call = calls.add(
        arguments.content,
        type=arguments.kind,
        metadata=metadata or None,
        source=SOURCE,
        expires_at=arguments.expires_at or None,
        supersedes=arguments.supersedes or None,
    )
    added = await session.call(call, arguments.project)
    saved = schemas.Saved(
        id=added.id[:ID_DIGITS],
        outcome=added.outcome,
        namespace=added.namespace or ROOT,
        disagrees_with=tell_opposites(added),
        nearest=f"{added.nearest[:ID_DIGITS]}: {make_inert(added.nearest_text)}" if added.nearest else "",
        redacted=added.redacted,
    )
    where = make_inert(added.namespace or "") or f"{ROOT} (shared by all)"
    is_new = saved.outcome == "created"
    said = (
        f"Saved in {where} as {saved.id}." if is_new else f"Known already in {where} as {saved.id}; it is up to date."
    )
    if added.waiting:
        said += f" It waits on this machine until that of the shared root {added.shared} answers."
    elif added.shared:
        said += f" It is in the shared root {added.shared}: others who may read that root see it."
    if saved.disagrees_with and not arguments.supersedes:
        said += f" It disagrees with {'; '.join(saved.disagrees_with)}. {_REPLACES}"
    elif saved.nearest and not arguments.supersedes:
        said += f" The nearest saved memory is {saved.nearest}. {_REPLACES}"
    return ToolResult(said + _removed_text(added.redacted), saved)


def _removed_text(kinds: Redacted) -> str:
    return f" Removed before storing: {describe_credentials(kinds)}." if kinds else ""


async def _search(session: ProjectSession, arguments: schemas.SearchArguments) -> ToolResult:
    fields: dict[str, Any] = {"limit": arguments.limit, "session": session.id, "floor": FLOOR}
    fields |= _parse_period(arguments) | ({"where": arguments.where} if arguments.where else {})
    found = await session.call(calls.search(arguments.query, **fields), arguments.project)
    if not found.hits:
        return ToolResult("Nothing is remembered about that.", schemas.FoundMany(memories=[]))
    shown = show_memories(found.hits, arguments.max_tokens, session.place(arguments.project))
    return fit_answer(shown, arguments.max_tokens, lambda part: _answer_search(part, len(shown), found.degraded))


def _answer_search(part: Sequence[schemas.FoundMemory], total: int, degraded: Sequence[str]) -> ToolResult:
    omitted = total - len(part)
    more = f"{omitted} more found; raise max_tokens to see them." if omitted else ""
    lack = f"Searched without: {', '.join(degraded)}." if degraded else ""
    lines = [frame_lines([memory_line(item) for item in part]).rstrip() if part else "", more, lack]
    return ToolResult("\n".join(filter(None, lines)), schemas.FoundMany(memories=list(part), omitted=omitted))


def _parse_period(arguments: schemas.SearchArguments) -> dict[str, float]:
    """Return the filters for a period; if its end is a date without a time, that whole day is included."""
    period = {"after": moment(arguments.since)} if arguments.since else {}
    if arguments.until:
        is_day = len(arguments.until) == _DATE_CHARS and arguments.until[0].isdigit()
        period["before"] = moment(arguments.until, end=True) + (_DAY_S if is_day else 0.0)
    return period


async def _get(session: ProjectSession, arguments: schemas.GetMany) -> ToolResult:
    outcomes = await asyncio.gather(*(_get_one(session, id, arguments.project) for id in arguments.ids))
    memories = [outcome for outcome in outcomes if isinstance(outcome, Memory)]
    problems = [make_inert(outcome.message) for outcome in outcomes if isinstance(outcome, MemorydError)]
    if not memories:
        raise NotFound(" ".join(problems))
    texts = [make_lines_inert(memory.content) for memory in memories]
    size = max(_HEAD_TOKENS, arguments.max_tokens // len(memories) - _HEAD_TOKENS)
    for part in _PARTS:  # the tokens of escapes and marks are known only once the answer is built
        kept = [shorten_text(text, size // part) for text in texts]
        whole = [_show_whole(*parts) for parts in zip(memories, texts, kept, strict=True)]
        answer = fit_answer(whole, arguments.max_tokens, lambda some: _answer_get(some, len(memories), problems))
        if isinstance(answer.structured, schemas.GotMany) and len(answer.structured.memories) == len(memories):
            break
    return answer


async def _get_one(session: ProjectSession, id: str, project: str) -> Memory | MemorydError:
    try:
        return await session.call(Get(id=id), project)
    except (NotFound, AmbiguousId) as error:
        return error


def _show_whole(memory: Memory, text: str, kept: str) -> schemas.Whole:
    tags = memory.metadata.get("tags")
    return schemas.Whole(
        id=memory.id,
        date=iso(memory.created_at) or "",
        updated=iso(memory.updated_at) or "",
        kind=make_inert(memory.type),
        namespace=make_inert(memory.namespace),
        source=describe_origin(memory),
        content=kept,
        tags=[make_inert(str(tag)) for tag in tags] if isinstance(tags, list) else [],
        expires=iso(memory.expires_at) or "",
        superseded_by=(memory.superseded_by or "")[:ID_DIGITS],
        later=tell_later(memory),
        cut_from=len(text) if kept != text else 0,
    )


def _answer_get(part: Sequence[schemas.Whole], total: int, problems: Sequence[str]) -> ToolResult:
    left = total - len(part)
    more = [f"{left} more do not fit; ask for fewer at once, or raise max_tokens."] if left else []
    lines = [frame_lines([_whole_text(memory) for memory in part]).rstrip()] if part else []
    got = schemas.GotMany(memories=list(part), problems=[*problems, *more])
    return ToolResult("\n".join([*lines, *problems, *more]), got)


def _whole_text(memory: schemas.Whole) -> str:
    facts = [
        memory.kind,
        f"in {memory.namespace}" if memory.namespace else "shared by all",
        f"source {memory.source}",
        f"tags {', '.join(memory.tags)}" if memory.tags else "",
        f"expires {memory.expires[:10]}" if memory.expires else "",
        f"superseded by {memory.superseded_by}" if memory.superseded_by else "",
        f"the beginning of {memory.cut_from} characters" if memory.cut_from else "",
    ]
    head = f"- {memory.date[:10]} [{memory.id}] {', '.join(filter(None, facts))}:"
    return "\n".join([head, *(f"  | {row}" for row in memory.content.split("\n"))])


async def _update(session: ProjectSession, arguments: schemas.UpdateArguments) -> ToolResult:
    if not arguments.content and not arguments.feedback:
        raise Invalid("Say what changes: the new content, or feedback (useful or useless).")
    changes = []
    if arguments.content:
        changes.append(await session.call(calls.update(arguments.id, content=arguments.content), arguments.project))
    if arguments.feedback:
        useful = arguments.feedback == "useful"
        changes.append(await session.call(methods.feedback(arguments.id, useful), arguments.project))
    first = changes[0]
    operations = [change.operation[:ID_DIGITS] for change in changes]
    done = schemas.Updated(id=first.memory.id[:ID_DIGITS], operations=operations, redacted=first.redacted)
    what = ["changed"] if arguments.content else []
    what += [f"rated {arguments.feedback}"] if arguments.feedback else []
    return ToolResult(f"{done.id} is {' and '.join(what)}.{_removed_text(first.redacted)}", done)


async def _forget(session: ProjectSession, arguments: schemas.ForgetArguments) -> ToolResult:
    if bool(arguments.ids) == bool(arguments.query):
        raise Invalid("Say what to forget: either ids or a query.")
    if arguments.query and not arguments.dry_run:
        raise Invalid("A query only shows what could be forgotten; call again with the ids that you choose.")
    memories: Sequence[Memory]
    operation: str | None = None
    if arguments.query:
        search = calls.search(arguments.query, limit=FORGET_LIMIT, touch=False)
        memories = (await session.call(search, arguments.project)).hits
    else:
        memories = await asyncio.gather(*(session.call(Get(id=id), arguments.project) for id in arguments.ids))
        forget = calls.forget(*(memory.id for memory in memories), dry_run=arguments.dry_run)
        operation = (await session.call(forget, arguments.project)).operation
    shown = show_memories(memories, FORGET_BUDGET, session.place(arguments.project))
    return fit_answer(shown, FORGET_BUDGET, lambda part: _answer_forget(part, len(shown), arguments.dry_run, operation))


def _answer_forget(part: Sequence[schemas.FoundMemory], total: int, dry: bool, operation: str | None) -> ToolResult:
    shown = operation and operation[:ID_DIGITS]
    if not total:
        said = "Nothing is found."
    elif dry:
        said = "Nothing is changed yet; to forget it, call again with dry_run=false (for a query: with ids of these)."
    else:
        undo = f" The owner of the memory can take that back with `memctl undo {shown}`, but not in files."
        said = f"Forgot {total}." + (undo if shown else "")
    lines = [frame_lines([memory_line(item) for item in part]).rstrip()] if part else []
    lines += [f"… and {total - len(part)} more."] if part and total > len(part) else []
    forgotten = schemas.ForgottenMany(dry_run=dry, memories=list(part), operation=shown)
    return ToolResult("\n".join([*lines, said]), forgotten)


async def _get_context(session: ProjectSession, arguments: schemas.ContextArguments) -> ToolResult:
    # Always fresh: an agent that asks wants everything, and hosts do not report when a context is lost.
    call = calls.context(arguments.task, max_tokens=arguments.max_tokens, session=session.id, fresh=True)
    made = await session.call(call, arguments.project)
    return ToolResult(made.text or "Nothing relevant is remembered.")


# search, fetch of ChatGPT's connectors -------------------------------------------------------------------------------


async def _search_pages(session: ProjectSession, arguments: schemas.OneQuery) -> ToolResult:
    hits = await session.call(calls.search(arguments.query, session=session.id))
    shown = show_memories(hits.hits, _TITLES_TOKENS, session.namespace)
    results = [
        schemas.SearchResult(id=hit.id, title=item.text[:_TITLE_CHARS], url=URL + hit.id)
        for hit, item in zip(hits, shown, strict=True)
    ]
    return ToolResult("", schemas.Pages(results=results))


async def _fetch(session: ProjectSession, arguments: schemas.OneId) -> ToolResult:
    memory = await session.call(Get(id=arguments.id))
    document = schemas.FetchedDocument(
        id=memory.id,
        title=make_inert(memory.content)[:_TITLE_CHARS],
        text=shorten_text(make_lines_inert(memory.content), schemas.MAX_TOKENS),
        url=URL + memory.id,
        metadata={
            "date": iso(memory.created_at) or "",
            "kind": make_inert(memory.type),
            "source": describe_origin(memory),
        },
    )
    return ToolResult("", document)


TOOLS: Mapping[str, Tool] = {
    "memory_search": Tool(
        "Search memory",
        "Search what was remembered in earlier sessions, by meaning and by words; best first, each with date, id and "
        "source. Use it before asking the user for something they may have said, and before deciding something again. "
        "It looks in the project and around it; to look in a place inside it, name that as `project`.",
        schemas.SearchArguments,
        schemas.FoundMany,
        _search,
    ),
    "memory_context": Tool(
        "Context for a task",
        "What is remembered that matters for a task, in order, within max_tokens. Call it once when a task begins.",
        schemas.ContextArguments,
        None,
        _get_context,
    ),
    "memory_save": Tool(
        "Save a memory",
        "Remember one thing for later sessions: a decision and its reason, a preference, a correction, a lesson, a "
        "fact that will matter again. If it changes something saved before, give the id of that in supersedes: the old "
        "one is no longer shown, or, if the person saved it, only together with this one. Not for secrets, nor for "
        "what the code or its history says.",
        schemas.Save,
        schemas.Saved,
        _save,
        reads_only=False,
    ),
    "memory_get": Tool("Read memories", "Read memories in full by id.", schemas.GetMany, schemas.GotMany, _get),
    "memory_update": Tool(
        "Change or rate a memory",
        "Correct a slip in the text of a memory, or say whether it was useful. Save what changed as a new memory "
        "(memory_save with supersedes).",
        schemas.UpdateArguments,
        schemas.Updated,
        _update,
        reads_only=False,
        destroys=True,
    ),
    "memory_forget": Tool(
        "Forget memories",
        "Forget memories that are wrong or unwanted. At first it only shows what would go; dry_run=false does it.",
        schemas.ForgetArguments,
        schemas.ForgottenMany,
        _forget,
        reads_only=False,
        destroys=True,
    ),
}

# `search` and `fetch` in the format that ChatGPT's connectors require; their text is JSON too.
CONNECTOR_TOOLS: Mapping[str, Tool] = {
    "search": Tool("Search", "Search the memories.", schemas.OneQuery, schemas.Pages, _search_pages),
    "fetch": Tool("Fetch", "Read one memory in full by its id.", schemas.OneId, schemas.FetchedDocument, _fetch),
}
