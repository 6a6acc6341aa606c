"""A session for the OpenAI Agents SDK: a conversation's items, kept by memoryd and seen by every process.

Each item is a memory with a key: the item is its metadata, what was said in it its content, so that it is also found by
searches and hooks. Items without text (calls of tools) are found by their session alone.
"""

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

from agents.items import TResponseInputItem
from agents.memory.session import SessionABC

from memoryd.client.protocol import Delete, DeleteWhere, List, Memory, NewMemory, Put
from memoryd.client.transport.sync import Client

SOURCE = "openai-agents"
_MOST = 1000  # of one reply


class MemorydSession(SessionABC):
    """A session of the OpenAI Agents SDK in memoryd. The namespace of `client` is where its items are kept."""

    def __init__(self, session_id: str, client: Client | None = None) -> None:
        self.session_id = session_id
        self._client = client or Client()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items in order, the latest `limit` of them or all."""
        return [memory.metadata["item"] for memory in await asyncio.to_thread(self._read, limit)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items to the end of the conversation."""
        await asyncio.to_thread(self._add, items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the latest item, None where there is none."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Delete all items; `memctl undo` brings them back."""
        await asyncio.to_thread(self._client.call, DeleteWhere(source=[SOURCE], where=self._where, reach="exact"))

    @property
    def _where(self) -> dict[str, Any]:
        return {"metadata.session": self.session_id}

    def _read(self, limit: int | None) -> list[Memory]:
        found: list[Memory] = []
        while limit is None or len(found) < limit:
            call = List(
                source=[SOURCE],
                where=self._where,
                reach="exact",
                limit=_MOST if limit is None else min(_MOST, limit - len(found)),
                offset=len(found),
            )
            page = self._client.call(call)
            found += page.memories
            if not page.memories or len(found) >= page.total:
                break
        return found[::-1]

    def _add(self, items: list[TResponseInputItem]) -> None:
        for item in items:
            text = "\n".join(_list_texts(item))
            memory = NewMemory(
                content=text or "item",
                type="message",
                source=SOURCE,
                metadata={"session": self.session_id, "item": dict(item)},
            )
            self._client.call(Put(key=uuid.uuid4().hex, memory=memory, searchable=bool(text)))

    def _pop(self) -> TResponseInputItem | None:
        found = self._read(1)
        if not found:
            return None
        self._client.call(Delete(ids=[found[0].id]))
        return found[0].metadata["item"]  # type: ignore[no-any-return]


def _list_texts(item: Any) -> Iterator[str]:
    """Yield what was said in an item: its content as text, or the texts of its parts."""
    content = item.get("content")
    if isinstance(content, str) and content.strip():
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str) and part["text"].strip():
            yield part["text"]
