"""Feedback: whether a memory was useful, as a caller says or as citations by agents show."""

from typing import Annotated

from msgspec import Meta

from memoryd.client.protocol.base import Scoped, rpc
from memoryd.client.protocol.memories import Changed

MAX_NOTE_CHARS = 500


@rpc("within", grows=True, page=True)
class Feedback(Scoped[Changed], kw_only=True, frozen=True):
    """Say whether a memory was useful, and why.

    Feedback changes the memory's score in later searches a little, by a factor of 0.85 to 1.15 in all. Each caller has
    one vote on a memory: a later one replaces it. A caller is a token, or without a token a namespace.
    """

    id: str
    """id or unique prefix"""
    useful: bool
    """whether it was useful"""
    note: Annotated[str, Meta(max_length=MAX_NOTE_CHARS)] = ""
    """why, at most 500 characters"""
    allow_secrets: bool = False
    """store likely credentials as they are"""
