"""A session for the OpenAI Agents SDK: memoryd stores the items of a conversation, for all processes.

Each item is a memory with a key: the item is the metadata, its text the content, so that searches and hooks find it
too. Items without text (tool calls) are returned by their session only.
"""

import asyncio
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from memoryd.client.errors import NotFound
from memoryd.client.extras import named_extra
from memoryd.client.integrations.clients import check_count, choose_client, put_entries
from memoryd.client.integrations.values import build_content, decode, encode, escape, escape_name
from memoryd.client.protocol import Delete, KeyedEntry, List, Memory, NewMemory
from memoryd.client.transport.sync import Client

with named_extra("openai-agents"):
    from agents.items import TResponseInputItem
    from agents.memory.session import SessionABC

SOURCE = "openai-agents"
_MOST = 1000  # memories in a reply
_MOST_ID_BYTES = 400  # it is part of a key


class MemorydSession(SessionABC):
    """A session of the OpenAI Agents SDK in memoryd. Its items are in the namespace of `client`, by default the root.

    Credentials (passwords, API keys) are removed from items before they are stored; with `allow_secrets` items are
    stored unchanged.
    """

    def __init__(self, session_id: str, client: Client | None = None, *, allow_secrets: bool = False) -> None:
        if not isinstance(session_id, str) or not session_id:
            raise ValueError(f"The name of a session is a text that is not empty, not {session_id!r}.")
        if len(escape_name(session_id).encode()) > _MOST_ID_BYTES:
            raise ValueError(f"The session {session_id[:40]!r} is longer than {_MOST_ID_BYTES} bytes.")
        self.session_id = session_id
        self._client = choose_client(client)
        self._allow_secrets = allow_secrets

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items in order, the latest `limit` of them or all."""
        check_count("limit", limit)
        return [_read_item(memory) for memory in await asyncio.to_thread(self._read, limit)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items to the conversation, all or none; raise `ValueError` if one cannot be stored."""
        await asyncio.to_thread(self._add, items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the latest item, None if there is none. Concurrent callers never get the same item."""
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        """Delete all items; `memctl undo` restores them."""
        await asyncio.to_thread(self._client.call, Delete(source=[SOURCE], where=self._where, reach="exact"))

    @property
    def _where(self) -> dict[str, Any]:
        return {"metadata.session": escape(self.session_id)}

    def _read(self, limit: int | None) -> list[Memory]:
        memories: list[Memory] = []
        while limit is None or len(memories) < limit:
            call = List(
                source=[SOURCE],
                where=self._where,
                reach="exact",
                limit=_MOST if limit is None else min(_MOST, limit - len(memories)),
                offset=len(memories),
                ascending=limit is None,  # so that items added meanwhile are on the last page
            )
            page = self._client.call(call)
            memories += page.memories
            if not page.memories or len(memories) >= page.total:
                break
        return memories if limit is None else memories[::-1]

    def _add(self, items: list[TResponseInputItem]) -> None:
        entries = [self._build_entry(item) for item in items]
        put_entries(self._client, entries, self._allow_secrets)

    def _build_entry(self, item: TResponseInputItem) -> KeyedEntry:
        if not isinstance(item, Mapping):
            raise ValueError(f"An item is a mapping with `role` and `content`, not {type(item).__name__}.")
        text = build_content("\n".join(_list_texts(item)))
        memory = NewMemory(
            content=text if text.strip() else "item",
            type="message",
            source=SOURCE,
            metadata={"session": escape(self.session_id), "item": encode(dict(item))},
        )
        # A session id with a credential is refused in the key; in the metadata it would be changed silently.
        key = f"{uuid.uuid4().hex} {escape_name(self.session_id)}"
        return KeyedEntry(key=key, memory=memory, searchable=bool(text.strip()))

    def _pop(self) -> TResponseInputItem | None:
        while memories := self._read(1):
            try:
                self._client.call(Delete(ids=[memories[0].id]))
            except NotFound:  # another caller has taken it
                continue
            return _read_item(memories[0])
        return None


def _read_item(memory: Memory) -> TResponseInputItem:
    return decode(memory.metadata["item"])  # type: ignore[no-any-return]


def _list_texts(item: Any) -> Iterator[str]:
    """Yield the texts of an item: its content if that is text, or those of its parts."""
    content = item.get("content")
    if isinstance(content, str) and content.strip():
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str) and part["text"].strip():
            yield part["text"]
