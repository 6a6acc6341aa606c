"""`search` and `fetch` in the shapes that ChatGPT's connectors call for; JSON is their text, too."""

from collections.abc import Mapping

from memoryd.client import calls
from memoryd.client.inert import make_inert, make_lines_inert, origin
from memoryd.client.memctl.agents.mcp import schemas
from memoryd.client.memctl.agents.mcp.answers import Answer, shorten_texts, show_memories
from memoryd.client.memctl.agents.mcp.session import Session
from memoryd.client.memctl.agents.mcp.tools import Tool
from memoryd.client.protocol import Get
from memoryd.client.times import iso

URL = "memory://memory/"
_TITLE_CHARS = 120
_TITLES_TOKENS = 1500


async def _search(session: Session, given: schemas.OneQuery) -> Answer:
    hits = await session.call(calls.search(given.query, session=session.id))
    shown = await show_memories(session, hits.hits, _TITLES_TOKENS, session.namespace)
    results = [
        schemas.Page(id=hit.id, title=item.text[:_TITLE_CHARS], url=URL + hit.id)
        for hit, item in zip(hits, shown, strict=True)
    ]
    return Answer("", schemas.Pages(results=results))


async def _fetch(session: Session, given: schemas.OneId) -> Answer:
    memory = await session.call(Get(id=given.id))
    [text] = await shorten_texts(session, [make_lines_inert(memory.content)], schemas.MAX_TOKENS)
    document = schemas.Document(
        id=memory.id,
        title=make_inert(memory.content)[:_TITLE_CHARS],
        text=text,
        url=URL + memory.id,
        metadata={"date": iso(memory.created_at) or "", "kind": make_inert(memory.type), "source": origin(memory)},
    )
    return Answer("", document)


CONNECTOR_TOOLS: Mapping[str, Tool] = {
    "search": Tool("Search", "Search the memories.", schemas.OneQuery, schemas.Pages, _search),
    "fetch": Tool("Fetch", "Read one memory in full by its id.", schemas.OneId, schemas.Document, _fetch),
}
