"""Determine whose words a memory is when it is added or changed.

A memory that an agent saves counts as the person's own if the person told the agent to remember exactly that: in the
person's latest turn in a session of the namespace, within the last half hour. The words of the memory must be those of
the person, so that an order to save one thing does not cover another.
"""

import re
from typing import Any

import msgspec

from memoryd.client.patterns import compile_late
from memoryd.client.protocol import MemoryOrigin, NewMemory
from memoryd.daemon.agreement.parsing import has_digit, read_statement
from memoryd.daemon.core.core import Core
from memoryd.daemon.language.sentences import split_sentences
from memoryd.daemon.store.caller import Caller
from memoryd.daemon.store.rows import Row

_STATEMENT_FIELDS = ("content", "summary", "type")  # if one of these changes, it is another statement
_RECENT_S = 1800.0
_MOST_TYPED = 600  # characters of an order to remember something
_SHARE = 0.8  # of the person's words that must be in the memory
_ADDED_STEMS = frozenset({"user", "person", "want", "prefer"})  # of words that agents put before the person's
_VERBS = (
    r"remember|memori[sz]e|note|save|store|keep in mind|(?:make|take) a note|write down"
    r"|merke? dir|notiere?|speichere?|retiens|souviens-toi|notez?|recuerda|anota|guarda"
)
_ORDER = compile_late(
    r"(?:(?:please|also|and|ok|okay|bitte|por favor),? ){0,2}((?:can|could) you )?"
    rf"(?:{_VERBS})\b(?: (?:this|it|down|bitte|dir|as a (?:rule|decision|preference|lesson|fact)|for later)\b)?"
    r" ?(?:: ?|, ?)?(?: ?(?:that|dass|que) )?",
    re.IGNORECASE,
)
_ORDER_BEHIND = compile_late(
    r"[.,;:!–—-] ?(?:please |bitte )?(?:remember|memori[sz]e|note|save|keep|merke? dir|retiens|recuerda|anota)"
    r"(?: (?:this|that|it|das|cela|ça|eso|esto))?(?: (?:please|bitte))?[.!]?$",
    re.IGNORECASE,
)


def limit(memory: NewMemory, caller: Caller) -> NewMemory:
    """Return a memory with an origin that its caller may claim: a caller with a token is always an agent."""
    is_claimed = memory.origin == "person" and caller.bound
    return msgspec.structs.replace(memory, origin="agent") if is_claimed else memory


def credit(core: Core, namespace: str, memory: NewMemory, caller: Caller) -> NewMemory:
    """Set the origin of a memory to the person if an agent saves what the person told it to save."""
    memory = limit(memory, caller)
    if memory.origin == "agent" and _is_ordered(core, namespace, memory):
        memory = msgspec.structs.replace(memory, origin="person")
    return memory


def change(row: Row, fields: dict[str, Any], origin: MemoryOrigin, caller: Caller) -> dict[str, Any]:
    """Return the further columns that a change of the text sets: its origin, and that it is not confirmed."""
    if all(fields.get(name, getattr(row, name)) == getattr(row, name) for name in _STATEMENT_FIELDS):
        return {}
    return {"origin": "agent" if origin == "person" and caller.bound else origin, "confirmed_at": None}


def keep(row: Row, old: Row) -> None:
    """Keep the origin of the person's memory in a row that repeats it."""
    is_same = all(getattr(row, name) == getattr(old, name) for name in _STATEMENT_FIELDS)
    if is_same and old.is_persons and row.origin != "person":
        row.origin, row.confirmed_at = old.origin, old.confirmed_at


def take_in(row: Row, stored: Row | None) -> None:
    """Set the origin of an imported row: that of the same stored memory, else `import`, since it cannot be verified."""
    if stored is not None and all(getattr(row, name) == getattr(stored, name) for name in _STATEMENT_FIELDS):
        row.origin, row.confirmed_at = stored.origin, stored.confirmed_at
    else:
        row.origin = row.origin if row.origin in ("heard", "file") else "import"
        row.confirmed_at = None


def _is_ordered(core: Core, namespace: str, memory: NewMemory) -> bool:
    number = core.store.namespaces.find_number(namespace)
    if number is None or memory.summary or memory.pinned or len(memory.content) > _MOST_TYPED:
        return False
    latest: dict[str, str] = {}
    for turn in sorted(core.active.list_turns(frozenset([number])), key=lambda turn: turn.id):
        if turn.role == "user" and turn.created_at >= core.clock() - _RECENT_S:
            latest[turn.session] = turn.content
    typed = [part for text in latest.values() for part in list_ordered(text)]
    return any(_is_typed(memory.content, part) for part in typed)


def list_ordered(text: str) -> list[str]:
    """Return the texts that a person's order to remember may refer to.

    These are the rest of the sentence with the order, the same with all following sentences, and the text before an
    order at the end.
    """
    text = " ".join(text[: 2 * _MOST_TYPED].split())
    parts: list[str] = []
    sentences = split_sentences(text)
    for at, sentence in enumerate(sentences):
        if (order := _ORDER.match(sentence)) and (order[1] or not sentence.endswith("?")):
            rest = sentence[order.end() :]
            parts += [rest, " ".join([rest, *sentences[at + 1 :]])]
    if behind := _ORDER_BEHIND.search(text):
        parts.append(text[: behind.start()])
    return parts


def _is_typed(content: str, typed: str) -> bool:
    """Return whether a text repeats typed words: the same words in the same order, with all numbers and negations."""
    saved, ordered = read_statement(content), read_statement(typed)
    saved_words = [word for word in saved.content if word not in _ADDED_STEMS or word in ordered.content]
    common = [word for word in ordered.content if word in saved_words]
    is_whole = len(common) >= _SHARE * len(ordered.content) and all(
        map(saved_words.__contains__, filter(has_digit, ordered.content))
    )
    return bool(saved_words) and saved_words == common and is_whole and saved.negative == ordered.negative
