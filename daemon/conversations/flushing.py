"""`flush`: what is worth keeping of a conversation becomes list items of a note in a workspace, by default today's."""

from concurrent.futures import Future

from memoryd.client.errors import NotFound
from memoryd.client.protocol import Flush, Flushed, Remember
from memoryd.daemon.conversations.learning import build_embedder, find_facts, is_worth_keeping
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import handles
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.thoughts import KEPT_CHARS, Heard
from memoryd.daemon.workspaces import writing
from memoryd.daemon.workspaces.placing import relative_path
from memoryd.daemon.workspaces.replacing import read_file


@handles(Flush)
def begin(core: Core, call: Flush, caller: Caller = USER) -> "Future[Flushed]":
    """Begin to flush a conversation; the lane is free again at once, since a language model may be asked."""
    known = _read_note(core, call, caller)  # a place that is wrong is refused before anybody thinks
    return core.workspaces.run_apart("flush", lambda: flush(core, call, caller, known))


def flush(core: Core, call: Flush, caller: Caller, known: str) -> Flushed:
    """Write the facts of turns, apart from what the note says already."""
    now = core.clock()
    said = [Heard(at, "", turn.role, now, turn.content[:KEPT_CHARS]) for at, turn in enumerate(call.turns)]
    by, found = find_facts(core.cognition.provider, said, build_embedder(core))
    facts = dict.fromkeys(" ".join(fact.text.split()) for fact in found if is_worth_keeping(core, fact))
    new = [fact for fact in facts if fact not in known]
    if not new:
        return Flushed(text="", by=by, note=None)
    text = "\n".join(f"- {fact}" for fact in new)
    note = writing.remember(core, Remember(text=text, workspace=call.workspace, file=call.file), caller)
    return Flushed(text=text, by=by, note=note)


def _read_note(core: Core, call: Flush, caller: Caller) -> str:
    """Return the text of the note that is written to, with single spaces; empty where there is none yet."""
    workspace = writing.find_workspace(core, call.workspace, caller)
    path = relative_path(workspace, call.file, core.clock(), core.config.workspaces.local_dates)
    try:
        return " ".join(read_file(workspace.root, path).decode("utf-8", "replace").split())
    except NotFound:
        return ""
