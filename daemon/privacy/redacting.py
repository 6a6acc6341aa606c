"""The job that checks stored texts for credentials by new rules, once after each change of the rules.

Texts from conversations are redacted for good: in rows, their history, the queues, the list of skipped turns, the full
text, and free pages. The text of files is redacted in the index, but not in the files. Memories that were added on
purpose may contain a credential on purpose: they are not changed, but each dry run lists them. The version of the rules
is a hash of their source and of `[privacy]`; it is stored when everything was checked, so an interrupted run begins
again and finds less to do.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import dropwhile
from pathlib import Path

import msgspec

from memoryd.client import credentials
from memoryd.client.credentials import describe_kinds, redact, redact_tree
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import LOOK, Step, StopCheck, Work
from memoryd.daemon.erasing import erasing
from memoryd.daemon.privacy.privacy import find_privacy
from memoryd.daemon.privacy.tables import redacting
from memoryd.daemon.privacy.tables.redacting import TABLES, StoredText
from memoryd.daemon.rooms import list_rooms
from memoryd.daemon.store import turns
from memoryd.daemon.store.writer import Transaction

VERSION = "redacted_by"  # the setting: the rules by which all texts were checked, or all up to a table and a key
_PLAN_S = 120.0
_TEXTS = frozenset({"content", "summary", "neighbours", "previous"})


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan to redact the credentials that the present rules find, unless the last check used the same rules.

    It reads texts for at most `_PLAN_S`; the next run continues after them.
    """
    version, state = find_version(core), core.store.read_setting(VERSION) or ""
    if find_privacy(core).mode != "allow" and state != version:
        yield from _check(core, version, state.split()[1:] if state.startswith(version) else [])


def look(core: Core, now: float) -> Iterator[Step]:
    """Plan like `plan`; if all texts are checked already, list those with a credential that were left unchanged."""
    if core.store.read_setting(VERSION) != find_version(core) or find_privacy(core).mode == "allow":
        yield from plan(core, now)
        return
    for step in _check(core, find_version(core), []):
        if step.action not in ("note", "continue") or step.data[1]:
            yield step


def _check(core: Core, version: str, place: Sequence[str]) -> Iterator[Step]:
    """Plan to redact the credentials in the texts after a table and a key."""
    until, any_found = time.monotonic() + _PLAN_S, False
    for text in _iterate(core, place):
        kinds: Counter[str] = Counter()
        if _redact(core, text, kinds) == text.texts:
            yield LOOK
        else:
            reason = f"contains what looks like {describe_kinds(kinds)}"
            any_found |= text.is_said
            yield (
                Step("redact", text.name, reason, (text.table, text.key))
                if text.is_said
                else Step("leave", text.name, f"{reason}; it was added on purpose, so change or delete it yourself")
            )
        if time.monotonic() > until:
            state = f"{version} {text.table} {text.key}"
            yield Step("continue", "rules", "the next run continues with the rest", (state, any_found))
            return
    yield Step("note", "rules", "all stored texts were checked by the present rules", (version, any_found))


def apply(core: Core, step: Step, check: StopCheck) -> dict[str, int]:
    """Redact one text, or store that all were checked and clear the full text and free pages of the words."""
    if step.action == "leave":
        return {"left": 1}
    if step.action in ("note", "continue"):
        state, any_found = step.data
        for _ in erasing.clean(core) if any_found else ():
            check()
        core.store.set_setting(VERSION, state).result()
        return {}
    table, key = step.data
    is_changed = core.store.write(lambda transaction: _replace(core, transaction, table, key), over_limit=True).result()
    return {"redacted": 1} if is_changed else {"skipped": 1}


def _iterate(core: Core, place: Sequence[str]) -> Iterator[StoredText]:
    """Yield the stored texts after a table and a key."""
    first, after = (place[0], int(place[1])) if place else (next(iter(TABLES)), 0)
    for table in dropwhile(lambda name: name != first, TABLES):
        after = after if table == first else 0
        while True:
            with core.store.reading() as connection:
                texts = redacting.read(connection, table, after)
            if not texts:
                break
            yield from texts
            after = texts[-1].key


def _replace(core: Core, transaction: Transaction, table: str, key: int) -> bool:
    text = redacting.read_one(transaction.connection, table, key)
    texts = text and _redact(core, text, Counter())
    if text is None or texts is None or texts == text.texts:
        return False
    if table == "memories" and not text.is_file:
        for room in list_rooms():  # texts derived from it, such as the label of a topic, may have its words
            room.erase(transaction.connection, [], [key])
    redacting.replace(transaction.connection, text, texts)
    if table == "memories":
        transaction.after_commit(lambda: core.embedding.refresh([key]))
    if table == "turns":
        concerned = {turn.namespace for turn in turns.read_keys(transaction.connection, [text.name]).values()}
        core.active.follow(transaction, concerned)
    transaction.after_commit(core.sources.traces.clear)
    return True


def _redact(core: Core, entry: StoredText, kinds: Counter[str]) -> tuple[str, ...]:
    text = partial(_redact_text, keep_lines=entry.is_file)  # a chunk of a file has line numbers
    redacted = {"before": _redact_image, "metadata": _redact_tree}
    columns = TABLES[entry.table][1]
    return tuple(
        redacted.get(column, text)(core, value, kinds) for column, value in zip(columns, entry.texts, strict=True)
    )


def _redact_text(core: Core, text: str, kinds: Counter[str], keep_lines: bool = False) -> str:
    return redact(text, kinds, find_privacy(core).allowed, keep_lines)


def _redact_tree(core: Core, text: str, kinds: Counter[str]) -> str:
    before = kinds.total()
    tree = redact_tree(msgspec.json.decode(text), kinds, find_privacy(core).allowed)
    return text if kinds.total() == before else msgspec.json.encode(tree, order="sorted").decode()


def _redact_image(core: Core, text: str, kinds: Counter[str]) -> str:
    """Return a former state of a memory or a turn without credentials."""
    before, state = kinds.total(), msgspec.json.decode(text)
    for image in (part for name in ("row", "turn") if (part := state.get(name))):
        for name in _TEXTS & image.keys():
            image[name] = _redact_text(core, image[name], kinds)
        if "metadata" in image:
            image["metadata"] = _redact_tree(core, image["metadata"], kinds)
    return text if kinds.total() == before else msgspec.json.encode(state).decode()


def find_version(core: Core) -> str:
    """Return a hash of the rules: of their source, and of the exceptions in the configuration."""
    allowed = find_privacy(core).allowed
    return hashlib.sha256(f"{_hash_rules()} {allowed.pattern if allowed else ''}".encode()).hexdigest()[:16]


@cache
def _hash_rules() -> str:
    files = sorted(path for path in Path(credentials.__file__).parent.iterdir() if path.suffix in (".py", ".toml"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


REDACT = Work(plan, alone=apply, at_limit=True, look=look)
