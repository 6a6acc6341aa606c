"""The call `unasked`: the memories that a hook shows an agent at the start of a session or with a prompt.

`starting` and `prompting` choose them. A session is not given the same memory twice, nor the same sentence in another
memory.
"""

import time
from concurrent.futures import Future

import msgspec

from memoryd.client.credentials.private import WHOLE
from memoryd.client.protocol import GetUnasked, Unasked, UnaskedLine
from memoryd.daemon.context import given
from memoryd.daemon.context.counting import build_counter
from memoryd.daemon.context.unasked_lines import ContextLine, FittedLines, KnownTexts, append_later, fit
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.limits import check_text
from memoryd.daemon.registry import handles
from memoryd.daemon.search.effects import Mark
from memoryd.daemon.search.retrieval import Sources
from memoryd.daemon.search.traces import TraceStore
from memoryd.daemon.store import rows, turns
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.pauses import TurnPlace
from memoryd.daemon.unasked import prompting, starting

PROMPT_TOKENS = 250


@handles(GetUnasked)
def get_unasked(core: Core, sources: Sources, call: GetUnasked) -> "Future[Unasked]":
    """Return the lines for a start or a prompt, after recording on disk what the session is given."""
    began = time.perf_counter()
    check_text("session", call.session)
    if not call.namespace and call.reach is None:  # the root's own memories, not those of all projects
        call = msgspec.structs.replace(call, reach="exact")
    ids = {} if call.fresh else given.read(core, call)
    known, by = _read_known(core, ids), build_counter(core)
    degraded: list[str] = []
    trace, refused = "", None
    if call.prompt == WHOLE:
        fitted = fit((), PROMPT_TOKENS, by)
    elif call.prompt.strip():
        is_paused = core.pauses.is_paused(TurnPlace(call.namespace, call.session, call.folder))
        if is_paused:  # nothing of a paused session may be stored, not even a trace
            sources = sources._replace(traces=TraceStore())
        prompt = prompting.find(core, sources, call, ids)
        new, most = [], core.config.hooks.prompt_lines
        for line in prompt.lines:
            if line.text and not known.has(line.text):
                new.append(line)
                known.add(line.text)
        fitted = fit(_append_later(core, call, new[:most]), PROMPT_TOKENS, by)
        prompt.note_given(fitted.lines, new, most)
        degraded, trace = prompt.degraded, "" if is_paused else prompt.trace.id
        refused = None if call.touch else prompt.name_nearest()
    else:
        max_tokens = core.config.hooks.start_tokens
        saved, latest = starting.choose(core, call, ids) if max_tokens else ([], [])
        fresh = [line for line in saved if line.text and not known.has(line.text)]
        fitted = starting.fit(_append_later(core, call, fresh), latest, known, max_tokens, by)
    if call.touch and fitted.lines:
        core.effects.note(_mark(core, call, fitted))
    result = Unasked(
        text=fitted.text,
        tokens=fitted.tokens,
        tokenizer=by.name,
        lines=[UnaskedLine(id=line.id, text=line.text, why=line.why, note=line.note) for line in fitted.lines],
        degraded=degraded,
        trace=trace,
        refused=refused,
        took_ms=(time.perf_counter() - began) * 1000,
    )
    memories = [memory for line in fitted.lines for memory in ((line.id, line.key), *line.also)]
    return given.keep(core, call, memories, result)


def _append_later(core: Core, call: GetUnasked, lines: list[ContextLine]) -> list[ContextLine]:
    """Append to lines the later statements that seem to change them."""
    selection = Filter(core.store.namespaces.reach(call.namespace, call.reach))
    with core.store.reading() as connection:
        return append_later(connection, lines, selection, core.clock())


def _read_known(core: Core, ids: dict[str, bytes]) -> KnownTexts:
    """Return the texts that a session was given, except those of memories that have changed since."""
    with core.store.reading() as connection:
        by_id = rows.read_ids(connection, sorted(ids))
        recent = turns.read_keys(connection, sorted(ids.keys() - by_id.keys()))
    by_id |= {key: turns.to_row(turn) for key, turn in recent.items()}
    return KnownTexts(row.content for id, row in by_id.items() if row.content_hash == ids[id])


def _mark(core: Core, call: GetUnasked, fitted: FittedLines) -> Mark:
    numbers = tuple(line.row for line in fitted.lines if line.row > 0)
    return Mark(
        namespace=call.namespace,
        session=call.session,
        at=core.clock(),
        rows=numbers,
        met=numbers if call.prompt.strip() else (),
        accessed=numbers if call.prompt.strip() else (),
    )
