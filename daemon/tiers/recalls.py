"""The recall-loop guard: what searches returned to each session lately, so that its repetition is not stored as new.

An agent puts what it recalled into its prompt and soon repeats it; stored again, each round would make the memory look
more important. Bounded in RAM, lost at a restart: then a repetition is at worst a duplicate. Threads: a lock, a leaf.
"""

import re
import threading
import unicodedata
from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from memoryd.client.prompt_text import FRAME
from memoryd.daemon.language import talk
from memoryd.daemon.language.sentences import BOUNDARY

SESSIONS = 256
MEMORIES = 200  # of each session
SENTENCES = 100_000  # of all sessions, about 200 bytes each
_MAX_CHARS = 16_000
_LEAST_CHARS = 20  # of a memory's text, so that saying it is no chance
_ID = re.compile(r"\b[0-9a-f]{8,32}\b")
# What a context puts around a memory (`context/fitting.py`, `memctl mcp`): the date, the id; headings, dates.
_SHOWN = re.compile(
    r"^(?:disagrees with what was known on \d{1,2} [a-z]{3,9} \d{4}: )?(?:\d{4}-\d\d-\d\d )?"
    r"(?:\[[0-9a-f]{8}[^\]]{0,500}\] )?"
)
_HEADING = re.compile(
    r"[a-z ]{3,30}:|\d{1,2} (?:january|february|march|april|may|june|july|august|september|october|november|december)"
    r"(?: \d{4})?|\d{1,2}(?:st|nd|rd|th)"
)
_BULLET = re.compile(r"^(?:(?:[-*•>#]+|\d+[.)]|user:|assistant:)\s+)+")
_SPEAKER = re.compile(r"^[^:]{1,60}: ")


class Recalled(Protocol):
    """What a search returned."""

    @property
    def id(self) -> str: ...
    @property
    def content(self) -> str: ...


class SentenceHashes(NamedTuple):
    """The sentences of a memory, as hashes, and their length in characters."""

    sentences: frozenset[int]
    chars: int


class Recalls:
    """Sentences returned, by (namespace, session); the sessions that were quiet longest are evicted first."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[str, str], OrderedDict[str, SentenceHashes]] = OrderedDict()
        self._held: dict[str, Counter[int]] = {}  # by namespace: in how many memories of its sessions a sentence is
        self._size = 0  # sentences in `_told`
        self._lock = threading.Lock()

    def note(self, namespace: str, session: str, memories: Iterable[Recalled]) -> None:
        """Keep what a search from `namespace` returned to a session."""
        said = {memory.id: _read(_drop_label(memory.content)) for memory in memories}
        if not session or not said:
            return
        with self._lock:
            texts_by_id = self._told.setdefault((namespace, session), OrderedDict())
            self._told.move_to_end((namespace, session))
            for id, one in said.items():
                self._drop(namespace, texts_by_id.pop(id, None))
                texts_by_id[id] = one
                self._held.setdefault(namespace, Counter()).update(one.sentences)
                self._size += len(one.sentences)
            while len(texts_by_id) > MEMORIES:
                self._drop(namespace, texts_by_id.popitem(last=False)[1])
            while len(self._told) > SESSIONS or (self._size > SENTENCES and len(self._told) > 1):
                (other, _), evicted = self._told.popitem(last=False)
                for one in evicted.values():
                    self._drop(other, one)
            while self._size > SENTENCES and texts_by_id:
                self._drop(namespace, texts_by_id.popitem(last=False)[1])

    def _drop(self, namespace: str, said: SentenceHashes | None) -> None:
        if said is None:
            return
        held = self._held[namespace]
        for sentence in said.sentences:
            held[sentence] -= 1
            if not held[sentence]:
                del held[sentence]
        if not held:
            del self._held[namespace]
        self._size -= len(said.sentences)

    def forget(self, ids: Iterable[str]) -> None:
        """Forget what was returned of some memories."""
        gone = list(ids)
        with self._lock:
            for (namespace, _), texts_by_id in self._told.items():
                for id in gone:
                    self._drop(namespace, texts_by_id.pop(id, None))

    def find_repeated(self, namespace: str, session: str, text: str) -> list[str]:
        """Return the ids of the memories that a text merely repeats: each of its sentences was returned.

        Without a session, every session of the namespace counts.
        """
        if namespace not in self._held or len(text) > _MAX_CHARS:
            return []
        with self._lock:
            held = self._held.get(namespace, Counter())
            parts = frozenset(_find_held(part, held) for part in split_sentences(text))
            if not parts or not held.keys() >= parts:
                return []
            places = [place for place in self._told if place[0] == namespace and session in ("", place[1])]
            texts_by_id = {id: said.sentences for place in places for id, said in self._told[place].items()}
        origins = [id for id, said in texts_by_id.items() if not parts.isdisjoint(said)]
        known = frozenset().union(*(texts_by_id[id] for id in origins))
        return origins if parts <= known else []

    def is_known(self, namespace: str, session: str) -> bool:
        """Return whether a session was given anything."""
        return (namespace, session) in self._told

    def find_cited(self, namespace: str, session: str, text: str) -> list[str]:
        """Return the ids of the memories given to a session that a text names by 8 or more digits, or says in full."""
        with self._lock:
            texts_by_id = dict(self._told.get((namespace, session), ()))
        if not texts_by_id:
            return []
        text = text[:_MAX_CHARS]
        named, parts = set(_ID.findall(text.casefold())), split_sentences(text)
        sentences = {hash(form) for part in parts for form in (part, _SPEAKER.sub("", part))}
        return [
            id
            for id, said in texts_by_id.items()
            if any(id.startswith(prefix) for prefix in named)
            or (said.sentences and said.sentences <= sentences and said.chars >= _LEAST_CHARS)
        ]


def _find_held(part: str, held: Counter[int]) -> int:
    """Return the hash of a sentence as it was returned: a context may have put a speaker before it."""
    digest = hash(part)
    return digest if digest in held else hash(_SPEAKER.sub("", part))


def _drop_label(text: str) -> str:
    """Return a text without the name that it begins with: a context shows that once for several lines."""
    return text.removeprefix(f"{talk.find_speaker(text)}: ")


def _read(text: str) -> SentenceHashes:
    parts = set(split_sentences(text))
    return SentenceHashes(frozenset(map(hash, parts)), sum(map(len, parts)))


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text without bullets, speakers and what a context adds, in one case and spacing."""
    parts = _split_parts(text)
    return [part for part in parts if part not in _FRAME and not _HEADING.fullmatch(part)]


def _split_parts(text: str) -> list[str]:
    plain = unicodedata.normalize("NFC", text).casefold()
    parts = (_SHOWN.sub("", _BULLET.sub("", part.strip())).rstrip(".!?…。！？ ") for part in BOUNDARY.split(plain))
    return [" ".join(part.split()) for part in parts if part]


_FRAME = frozenset(_split_parts("".join(FRAME)))
