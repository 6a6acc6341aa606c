"""`flush`: append the important points of a conversation to a note in a workspace, by default today's, as list items.

The points are facts from a language model or, without one or if it fails, the sentences of a summary.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import Future

from memoryd.client.errors import NotFound
from memoryd.client.protocol.workspaces import Flush, Flushed, Remember
from memoryd.daemon.conversations.learning import is_worth_keeping
from memoryd.daemon.conversations.summarising import TOKENS
from memoryd.daemon.core.core import Core
from memoryd.daemon.llm.provider import RULES, Provider, Spoken, ask
from memoryd.daemon.registry import handles
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.extraction import KEPT_CHARS
from memoryd.daemon.workspaces import writing
from memoryd.daemon.workspaces.note_paths import relative_path
from memoryd.daemon.workspaces.replacing import read_file

log = logging.getLogger(__name__)


@handles(Flush)
def begin(core: Core, call: Flush, caller: Caller = USER) -> "Future[Flushed]":
    """Start to flush a conversation on another thread, since a language model may be asked."""
    known = _read_note(core, call, caller)  # first, so that a wrong file is refused before the model is asked
    return core.background.run("flush", lambda: flush(core, call, caller, known))


def flush(core: Core, call: Flush, caller: Caller, known: str) -> Flushed:
    """Append the points of turns that the note does not have yet."""
    said = [(turn.role, turn.content[:KEPT_CHARS]) for turn in call.turns]
    by, found = ask(log, core.cognition.provider, "extract facts", lambda provider: _find_points(core, provider, said))
    new = [point for point in dict.fromkeys(found) if point not in known]
    if not new:
        return Flushed(text="", by=by, note=None)
    text = "\n".join(f"- {point}" for point in new)
    note = writing.remember(core, Remember(text=text, workspace=call.workspace, file=call.file), caller)
    return Flushed(text=text, by=by, note=note)


def _find_points(core: Core, provider: Provider, said: Sequence[Spoken]) -> list[str]:
    """Return the points of turns, each on one line."""
    if provider is RULES:
        return provider.digest(said, "", TOKENS).splitlines()
    return [" ".join(fact.text.split()) for fact in provider.extract(said) if is_worth_keeping(core, fact)]


def _read_note(core: Core, call: Flush, caller: Caller) -> str:
    """Return the text of the note with single spaces, empty if there is none yet."""
    workspace = writing.find_workspace(core, call.workspace, caller)
    path = relative_path(workspace, call.file, core.clock(), core.config.workspaces.local_dates)
    try:
        return " ".join(read_file(workspace.root, path).decode("utf-8", "replace").split())
    except NotFound:
        return ""
