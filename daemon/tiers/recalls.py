"""The recall-loop guard: it recognises turns that repeat memories which the session was shown recently.

An agent that was shown a memory soon repeats it; if that were stored as a new memory, each repetition would make it
look more important. Bounded and in RAM only: after a restart a repetition is at worst a duplicate.

Threads: any; a lock, within which no other lock is taken.
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
_LEAST_CHARS = 20  # minimum length of a memory that counts as cited by its text
_ID = re.compile(r"\b[0-9a-f]{8,32}\b")
# Text that a context adds to a memory (`context/fitting.py`, `memctl mcp`): dates, ids, headings.
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
    """A memory that a search returned."""

    @property
    def id(self) -> str: ...
    @property
    def content(self) -> str: ...


class SentenceHashes(NamedTuple):
    """Hashes and lengths of the sentences of a memory."""

    sentences: frozenset[int]
    chars: int


class Recalls:
    """Sentences returned, by (namespace, session); the least recently used sessions are evicted first."""

    def __init__(self) -> None:
        self._returned: OrderedDict[tuple[str, str], OrderedDict[str, SentenceHashes]] = OrderedDict()
        self._held: dict[
            str, Counter[int]
        ] = {}  # by namespace: number of memories with a sentence, over all its sessions
        self._size = 0  # sentences in `_returned`
        self._lock = threading.Lock()

    def note(self, namespace: str, session: str, memories: Iterable[Recalled]) -> None:
        """Add the memories that a search from `namespace` returned to a session."""
        said = {memory.id: _read(_drop_label(memory.content)) for memory in memories}
        if not session or not said:
            return
        with self._lock:
            texts_by_id = self._returned.setdefault((namespace, session), OrderedDict())
            self._returned.move_to_end((namespace, session))
            for id, one in said.items():
                self._drop(namespace, texts_by_id.pop(id, None))
                texts_by_id[id] = one
                self._held.setdefault(namespace, Counter()).update(one.sentences)
                self._size += len(one.sentences)
            while len(texts_by_id) > MEMORIES:
                self._drop(namespace, texts_by_id.popitem(last=False)[1])
            while len(self._returned) > SESSIONS or (self._size > SENTENCES and len(self._returned) > 1):
                (other, _), evicted = self._returned.popitem(last=False)
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
        """Remove memories, for example when they are deleted."""
        gone = list(ids)
        with self._lock:
            for (namespace, _), texts_by_id in self._returned.items():
                for id in gone:
                    self._drop(namespace, texts_by_id.pop(id, None))

    def find_repeated(self, namespace: str, session: str, text: str) -> list[str]:
        """Return the ids of the memories that a text merely repeats, empty if any of its sentences was not returned.

        Without a session, every session of the namespace counts.
        """
        if namespace not in self._held or len(text) > _MAX_CHARS:
            return []
        with self._lock:
            held = self._held.get(namespace, Counter())
            # With or without the speaker that a context puts before a sentence.
            parts = frozenset(
                digest if (digest := hash(part)) in held else hash(_SPEAKER.sub("", part))
                for part in split_sentences(text)
            )
            if not parts or not held.keys() >= parts:
                return []
            places = [place for place in self._returned if place[0] == namespace and session in ("", place[1])]
            texts_by_id = {id: said.sentences for place in places for id, said in self._returned[place].items()}
        origins = [id for id, said in texts_by_id.items() if not parts.isdisjoint(said)]
        known = frozenset().union(*(texts_by_id[id] for id in origins))
        return origins if parts <= known else []

    def is_known(self, namespace: str, session: str) -> bool:
        """Return whether anything was returned to a session."""
        return (namespace, session) in self._returned

    def find_cited(self, namespace: str, session: str, text: str) -> list[str]:
        """Return the ids of the memories that a text cites by at least 8 digits of the id, or by the whole text."""
        with self._lock:
            texts_by_id = dict(self._returned.get((namespace, session), ()))
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


def _drop_label(text: str) -> str:
    """Return a text without a speaker's name at its beginning, which a context shows once for several lines."""
    return text.removeprefix(f"{talk.find_speaker(text)}: ")


def _read(text: str) -> SentenceHashes:
    parts = set(split_sentences(text))
    return SentenceHashes(frozenset(map(hash, parts)), sum(map(len, parts)))


def split_sentences(text: str) -> list[str]:
    """Return the normalised sentences of a text, without bullets, speakers and additions of a context."""
    parts = _split_parts(text)
    return [part for part in parts if part not in _FRAME and not _HEADING.fullmatch(part)]


def _split_parts(text: str) -> list[str]:
    plain = unicodedata.normalize("NFC", text).casefold()
    parts = (_SHOWN.sub("", _BULLET.sub("", part.strip())).rstrip(".!?…。！？ ") for part in BOUNDARY.split(plain))
    return [" ".join(part.split()) for part in parts if part]


_FRAME = frozenset(_split_parts("".join(FRAME)))
