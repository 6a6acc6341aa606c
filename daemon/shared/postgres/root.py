"""One shared root in a PostgreSQL database: how each call is carried out there.

The server merges equal texts, in the transaction of the add; similar texts are not compared. Rows are decoded one by
one, and invalid ones are left out and counted, as for any root.
"""

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from statistics import fmean
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import numpy as np
from msgspec import UNSET

from memoryd.client import protocol
from memoryd.client.errors import Conflict, Forbidden, Invalid, MemorydError, NotFound, Unavailable
from memoryd.client.offline import is_here
from memoryd.client.protocol import (
    Add,
    Added,
    Candidates,
    FindCandidates,
    FoundMemory,
    Memory,
    NewMemory,
    Page,
    Scoped,
)
from memoryd.client.transport.postgres import schema
from memoryd.client.transport.postgres.connection import transact
from memoryd.daemon.arrays.lexical import MAX_TERMS
from memoryd.daemon.arrays.postings import count_stems
from memoryd.daemon.core import limits
from memoryd.daemon.memories import adding, origins
from memoryd.daemon.memories.duplicates import list_superseded
from memoryd.daemon.search.remotes import CHANGE_S, WAIT_S, pack_vector
from memoryd.daemon.search.retrieval import DEPTH_PER_HIT, LEAST_DEPTH
from memoryd.daemon.shared.postgres import matching
from memoryd.daemon.shared.postgres.line import PostgresLine
from memoryd.daemon.shared.postgres.tables import statements
from memoryd.daemon.shared.postgres.tables.statements import Fields, Match, Version, Wanted
from memoryd.daemon.shared.root import ID, Root
from memoryd.daemon.store import tokenizer
from memoryd.daemon.store.caller import Caller
from memoryd.daemon.store.connection import Connection

R = TypeVar("R")
M = TypeVar("M", bound=Memory)

_MOST_STEMS, _LONGEST_STEM = 50_000, 200  # of a text: the limits of the server's index
_PART = 10  # texts that are embedded at once, while other requests wait
_KINDS = {"created": "add", "updated": "update", "deleted": "delete"}
_CHANGED = frozenset(statements.SAID) - {"merges"}


class PostgresRoot(Root):
    """A root in a PostgreSQL database."""

    facts: schema.Facts | None = None
    _fills = False

    def _build_line(self) -> PostgresLine:
        return PostgresLine(self.name, self.settings.server, self._greet, self._begin)

    def _greet(self, connection: Any) -> None:
        """Set `facts` and `identity` from a new connection; raise if the database cannot be used."""
        self.facts = schema.check(connection, self.name)
        self.identity = self.facts.greet(self.name)
        self._fills = self.facts.may_write

    def _begin(self, connection: Any) -> None:
        self._note_model(*statements.begin(connection, self.name))

    def _note_model(self, model: str, dimensions: int) -> schema.Facts:
        assert self.facts is not None
        self.facts = self.facts._replace(model=model, dimensions=dimensions)
        return self.facts

    def describe_place(self) -> dict[str, str]:
        """Return versions, the durability of a commit there, and sessions that block others."""
        if self.facts is None or self.line.state != "ready":
            return {}
        said = {"version": f"{schema.VERSION}, {self.facts.server}"}
        if not self._has_vectors():
            model = self.facts.model
            said["vectors"] = (
                f"of {model}, which is not in use here: words alone find what is there. `memctl model pull {model}` and"
                f" `memctl model use {model}` change that"
            )
        with suppress(MemorydError, TimeoutError):
            said |= self.ask_for(partial(statements.describe, root=self.name), WAIT_S).result(WAIT_S)
        return {name: value for name, value in said.items() if value}

    def _is_here(self) -> bool:
        host = urlsplit(self.settings.server).hostname
        return host is None or is_here(host)  # none: a Unix socket

    def _ask(self, call: Scoped[R], caller: Caller, within_s: float) -> "Future[R]":
        assert isinstance(self.line, PostgresLine)
        answer = self.line.ask(self._plan(call, caller), within_s, isinstance(call, FindCandidates))
        answer.add_done_callback(self._note_refusal)
        return answer

    def _note_refusal(self, answer: "Future[Any]") -> None:
        if isinstance(error := answer.exception(), Forbidden):
            self.shelf.drop(error)

    def ask_for(self, work: Callable[[Any], R], within_s: float) -> "Future[R]":
        """Run `work` with the connection, in a transaction of its own."""
        assert isinstance(self.line, PostgresLine)
        return self.line.ask(work, within_s)

    def _plan(self, call: Any, caller: Caller) -> Callable[[Any], Any]:
        """Return the function that runs a call on a connection; raise `NotFound` if the call cannot reach the root."""
        own = caller.namespace if caller.bound else self.name
        if isinstance(call, Add):
            if not self.holds(call.namespace):
                raise NotFound(f"{call.namespace or 'The root'} is not in the shared root {self.name}.")
            return partial(self._add, call=call, caller=caller)
        if isinstance(call, FindCandidates | protocol.List):
            kind: Any = self._find_candidates if isinstance(call, FindCandidates) else self._list
            return partial(kind, call=call, wanted=self._build_wanted(call))
        if isinstance(call, protocol.Namespaces):
            return partial(self._count, wanted=self._build_wanted(call))
        if not self.holds(own) or getattr(call, "key", None) or getattr(call, "keys", None):  # nothing there has a key
            raise NotFound("There is no such memory within reach.")
        match call:
            case protocol.Get():
                return partial(self._get, call=call, own=own)
            case protocol.Update():
                return partial(self._update, call=call, own=own)
            case protocol.Delete(ids=[_, *_]):
                return partial(self._delete, call=call, own=own)
            case protocol.History(id=str(id)) if id:
                return partial(self._history, id=id, own=own)
            case protocol.Undo(operation=str(operation)) if not caller.bound:
                return partial(self._undo, operation=operation, own=own)
        raise NotFound("There is no such memory within reach.")

    # Finding ---------------------------------------------------------------------------------------------------------

    def _build_wanted(self, call: protocol.Filtered[Any] | protocol.Namespaces) -> Wanted:
        targets = self.find_targets(call)
        inner = next((target.namespace for target in targets if target.reach == "subtree"), None)
        is_all = inner == self.name
        wanted = Wanted(
            places=None if is_all else [target.namespace for target in targets],
            inner_of=None if is_all else inner,
            passed=self._core.clock(),
        )
        if isinstance(call, protocol.Namespaces):
            return wanted
        return wanted._replace(
            kinds=call.type or None,
            sources=call.source or None,
            since=call.after,
            until=call.before,
            path_begins=call.path_prefix,
            matching=matching.build_predicate(call.where),
            ids=call.ids or None if isinstance(call, protocol.List) else None,
        )

    def _count(self, connection: Any, wanted: Wanted) -> protocol.NamespaceList:
        counted = statements.count_namespaces(connection, self.name, wanted)
        entries = [protocol.NamespaceCount(name=name, memories=count) for name, count in counted if self.holds(name)]
        return protocol.NamespaceList(namespaces=entries, total=len(entries))

    def _find_candidates(self, connection: Any, call: FindCandidates, wanted: Wanted) -> Candidates:
        embedding = self._core.embedding
        generation = embedding.active if call.mode != "lexical" and self._has_vectors() else None
        vector = None
        if generation is not None:
            known = embedding.queries.find(generation, call.query)
            vector = embedding.queries.embed(generation, call.query) if known is None else known
        stems = [] if call.mode == "dense" else self._split(call.query)
        depth = max(LEAST_DEPTH, min(DEPTH_PER_HIT * call.limit, 1000))
        asked = None if vector is None else _show_vector(vector.tolist())
        assumed = self.facts
        try:
            model, matches = statements.search(connection, self.name, asked, stems, wanted, depth)
        except Exception:
            transact(connection, lambda _: None, self._begin)
            if self.facts == assumed:
                raise
            return self._find_candidates(connection, call, wanted)  # the root has vectors of another model now
        if self._note_model(*model) != assumed:
            return self._find_candidates(connection, call, wanted)
        if generation is not None and self._fills:
            self._fills = False
            self.ask_for(self._fill, CHANGE_S)
        scale = generation.embedder.floors.rescale if generation else float
        with self._core.store.reading() as reader:
            found = [one for match in matches if (one := self._read_match(reader, match, stems, scale)) is not None]
        return Candidates(
            found=found,
            model=generation.name if generation else "",
            documents=matches[0].total if matches else 0,
            average=fmean(text.length for one in found for text in one.texts) if found else 1.0,
            holding=dict(zip(stems, matches[0].counts, strict=True)) if matches else {},
            degraded=[f"unreadable:{self.name}"] if len(found) < len(matches) else [],
        )

    def _has_vectors(self) -> bool:
        """Return whether the model in use here is that of the root's vectors."""
        active = self._core.embedding.active
        if active is None or self.facts is None:
            return False
        return (active.name, active.embedder.dimensions) == (self.facts.model, self.facts.dimensions)

    def _read_match(
        self, reader: Connection, match: Match, stems: Sequence[str], scale: Callable[[float], float]
    ) -> FoundMemory | None:
        memory = self._read_fields(match.fields, FoundMemory)
        if memory is None:
            return None
        words = count_stems(reader, memory.content, memory.metadata)
        words.counts = {stem: words.counts[stem] for stem in stems if stem in words.counts}
        memory.texts = [words]
        if match.similarity is not None and match.vector is not None and abs(match.similarity) <= 1.001:
            memory.similarity = scale(match.similarity)
            memory.float16 = pack_vector(np.array(msgspec.json.decode(match.vector)))
        return memory

    def _split(self, text: str) -> list[str]:
        with self._core.store.reading() as connection:
            words = tokenizer.split_words(connection, text)[:MAX_TERMS]
            stems = [stem for word in words for stem in tokenizer.stem_words(connection, word)[:1]]
        return list(dict.fromkeys(stems))

    def _list(self, connection: Any, call: protocol.List, wanted: Wanted) -> Page:
        order, words = (call.sort, call.ascending), call.words.split()
        limit = min(1000, call.offset + call.limit)
        rows, total = statements.list_page(connection, self.name, wanted, words, call.all_states, order, limit)
        memories = [one for row in rows[call.offset :] if (one := self._read_fields(row, Memory)) is not None]
        is_whole = len(memories) == len(rows[call.offset :])
        return Page(memories=memories, total=total, degraded=[] if is_whole else [f"unreadable:{self.name}"])

    def _get(self, connection: Any, call: protocol.Get, own: str) -> protocol.MemoryDetail:
        return self._read_one(statements.find(connection, self.name, call.id, own), protocol.MemoryDetail)

    def _history(self, connection: Any, id: str, own: str) -> protocol.Changes:
        versions = statements.read_history(connection, self.name, id, own)
        changes: list[protocol.Change] = []
        former: dict[str, Any] = {}
        for version in versions:
            said = _decode_said(version)
            differing = {name for name in _CHANGED if former.get(name) != said.get(name)} if former else set()
            changes.append(
                protocol.Change(
                    id=version.memory,
                    operation=version.operation,
                    kind=_KINDS.get(version.action, "update"),
                    action=version.action if version.action in _KINDS else "updated",  # type: ignore[arg-type]
                    at=version.at,
                    token=version.author,
                    changed={name: (former.get(name), said.get(name)) for name in sorted(differing)},
                )
            )
            former = {} if version.action == "deleted" else said
        return protocol.Changes(id=versions[0].memory, changes=changes)

    def _read_fields(self, fields: Fields, kind: type[M], **more: Any) -> M | None:
        """Return a row as a memory; count it and return None if it is invalid."""
        try:
            return self._build(fields, kind, more)
        except (msgspec.MsgspecError, RecursionError, ValueError, TypeError) as error:
            self.note_unreadable(error)
            return None

    def _read_one(self, fields: Fields, kind: type[M]) -> M:
        memory = self._read_fields(fields, kind)
        if memory is None:
            raise Invalid(f"The memory in the shared root {self.name} cannot be read.")
        return memory

    def _build(self, fields: Fields, kind: type[M], more: Fields) -> M:
        values = {name: value for name, value in fields.items() if name not in ("author", "version")}
        if not isinstance(fields["author"], str) or not isinstance(fields["metadata"], str):
            raise ValueError("its author or metadata are none")
        metadata = msgspec.json.decode(fields["metadata"], type=dict[str, Any])
        values["metadata"] = {**metadata, "author": fields["author"]}
        return self._check_memory(msgspec.convert({**values, **more}, kind))

    # Changing --------------------------------------------------------------------------------------------------------

    def _add(self, connection: Any, call: Add, caller: Caller) -> Added:
        key = call.idempotency_key
        if key and (known := statements.apply_once(connection, self.name, key)):
            id, outcome, operation = known
        else:
            id, outcome, operation = self._insert(connection, call, caller)
            if key:
                statements.note_applied(connection, self.name, key, (id, outcome, operation))
        if not ID.fullmatch(id):
            raise Unavailable(f"The answer of the place of {self.name} cannot be read: it names no memory.")
        return Added(
            id=id,
            outcome="merged" if outcome == "merged" else "created",
            embedded=self._has_vectors(),
            operation=operation,
            namespace=call.namespace,
            shared=self.name,
        )

    def _insert(self, connection: Any, call: Add, caller: Caller) -> tuple[str, str, str]:
        memory = adding.add_lifetime(self._core, origins.credit(self._core, call.namespace, call.memory, caller))
        fields = _build_fields(memory, self._core.clock())
        fields |= {"id": self._core.new_id(), "namespace": call.namespace, "merges": call.dedup}
        fields |= self._derive(memory.content)
        operation = _begin_operation(connection)
        id = statements.insert(connection, self.name, fields)
        for prefix in list_superseded(memory):
            old = statements.find(connection, self.name, prefix, self.name, lock=True)
            # Only a person may replace a person's memory; otherwise both are shown until the person settles it.
            if old["id"] != id and (old["origin"] != "person" or memory.origin == "person"):
                statements.change(connection, self.name, old["id"], {"superseded_by": id})
        return id, "created" if id == fields["id"] else "merged", operation

    def _derive(self, content: str) -> Fields:
        """Return the columns by which searches find a text; without the root's model it has no vector."""
        with self._core.store.reading() as reader:
            stems = dict.fromkeys(s for s in tokenizer.stem_words(reader, content) if len(s) <= _LONGEST_STEM)
        embedded = self._core.embedding.embed_text(content) if self._has_vectors() else None
        vector = None if embedded is None else _show_vector(embedded[1].tolist())
        return {"stems": list(stems)[:_MOST_STEMS], "embedding": vector}

    def _fill(self, connection: Any) -> None:
        """Embed some memories that were saved without a vector; the first searches after each connection start this."""
        waiting = statements.list_without_vector(connection, self.name, _PART) if self._has_vectors() else []
        made = [(id, vector) for id, content in waiting if (vector := self._derive(content)["embedding"])]
        for id, vector in made:
            statements.put_vector(connection, self.name, id, vector)
        self._fills = bool(made) and len(waiting) == _PART  # the next search continues

    def _update(self, connection: Any, call: protocol.Update, own: str) -> protocol.Changed:
        given = ("content", "type", "summary", "importance", "expires_at", "pinned")
        fields = {name: value for name in given if (value := getattr(call, name)) is not UNSET}
        if not fields and call.metadata is UNSET:
            raise Invalid("The update names no field to change.")
        if "content" in fields:
            limits.check_content(fields["content"])
            fields |= self._derive(fields["content"])
        if "summary" in fields:
            limits.check_text("summary", fields["summary"])
        operation = _begin_operation(connection)
        old = self._read_one(statements.find(connection, self.name, call.id, own, lock=True), Memory)
        if {"content", "summary", "type"} & fields.keys():
            fields["origin"] = "agent" if call.origin == "person" and own != self.name else call.origin
        if call.metadata is not UNSET:
            metadata = {} if call.replace_metadata else old.metadata
            merged = {name: value for name, value in {**metadata, **call.metadata}.items() if value is not None}
            fields["metadata"] = limits.metadata_text({name: merged[name] for name in merged if name != "author"})
        changed = statements.change(connection, self.name, old.id, fields)
        return protocol.Changed(memory=self._read_one(changed, Memory), operation=operation)

    def _delete(self, connection: Any, call: protocol.Delete, own: str) -> protocol.Deleted:
        operation = _begin_operation(connection)
        ids = [statements.find(connection, self.name, prefix, own, lock=True)["id"] for prefix in call.ids]
        for id in dict.fromkeys(ids):
            statements.delete(connection, self.name, id)
        return protocol.Deleted(count=len(set(ids)), ids=list(dict.fromkeys(ids)), operation=operation)

    def _undo(self, connection: Any, operation: str, own: str) -> protocol.Undone:
        done = statements.read_operation(connection, self.name, operation, own)
        mine = _begin_operation(connection)
        first: dict[str, Version] = {}
        last = {version.memory: version.version for version in done}
        for version in done:
            first.setdefault(version.memory, version)
        # Restore replaced memories before their replacements are deleted.
        for version in sorted(first.values(), key=lambda one: one.action == "created"):
            self._take_back(connection, version, last[version.memory])
        return protocol.Undone(undone=done[0].operation, operation=mine, ids=sorted(first))

    def _take_back(self, connection: Any, version: Version, last: int) -> None:
        former, latest = statements.read_former(connection, self.name, version)
        if latest != last:
            raise Conflict(f"The memory {version.memory[:8]} was changed again since; undo that first.")
        if former is None:
            statements.delete(connection, self.name, version.memory)
            return
        said = _decode_said(former)
        fields = {name: said.get(name) for name in statements.SAID}
        fields["metadata"] = msgspec.json.encode(said.get("metadata", {})).decode()
        fields |= self._derive(str(said.get("content", "")))
        if version.action == "deleted":
            statements.insert(connection, self.name, fields)
        else:
            fixed = ("id", "created_at")
            changed = {name: value for name, value in fields.items() if name not in fixed}
            statements.change(connection, self.name, version.memory, changed)


def _begin_operation(connection: Any) -> str:
    """Begin an operation, to which the changes of the transaction belong; return its id."""
    operation = secrets.token_hex(16)
    statements.name_operation(connection, operation)
    return operation


def _build_fields(memory: NewMemory, now: float) -> Fields:
    names = ("content", "type", "summary", "importance", "source", "origin", "expires_at", "pinned")
    fields = {name: getattr(memory, name) for name in (*names, "path", "start_line", "end_line")}
    created_at = now if memory.created_at is None else memory.created_at
    metadata = {name: value for name, value in memory.metadata.items() if name != "author"}
    return {**fields, "metadata": limits.metadata_text(metadata), "created_at": created_at}


def _show_vector(numbers: Sequence[float]) -> str:
    return f"[{','.join(map(repr, numbers))}]"


def _decode_said(version: Version) -> dict[str, Any]:
    try:
        return msgspec.json.decode(version.said, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Invalid(f"The history of {version.memory[:8]} cannot be read: {error}.") from None
