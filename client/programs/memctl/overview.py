"""The output of `memctl` without a command: the state of the daemon and of the project, and the common commands."""

import os
from argparse import Namespace
from pathlib import Path
from typing import Any

from memoryd.client.calls import stats as stats_call
from memoryd.client.errors import Unavailable
from memoryd.client.methods import get_log, links, list_changes
from memoryd.client.programs.hooks import installing
from memoryd.client.programs.hooks.commands import check_state
from memoryd.client.programs.hooks.hosts import HOSTS
from memoryd.client.programs.memctl.commands import summary_of_common
from memoryd.client.programs.memctl.link import apply_options, client_for, namespace_of
from memoryd.client.programs.memctl.output import columns, make_printable, paint, paused_text, show
from memoryd.client.programs.memctl.source_file import shorten_home
from memoryd.client.programs.memctl.text_table import (
    count_stored,
    count_text,
    duration_text,
    format_fields,
    shorten,
    to_one_line,
    wrap,
)
from memoryd.client.projects.project import current_namespace, project_root
from memoryd.client.protocol import GetStatus, LoggedSession, Stats, Status
from memoryd.client.times import iso

_NAME_COLUMNS, _LINES = 16, 2  # the width of the names, and the most lines of a value
_LINKS = 100  # contradictions that are counted
_MORE = "All commands: memctl help --all. One with its options: memctl COMMAND --help"


def show_overview(args: Namespace) -> None:
    """Print the state of the daemon, that of the project (outside of one: of all projects), and the common commands."""
    namespace = namespace_of(args)
    options = _limit_options(args, namespace)
    try:
        with client_for(options, autostart=False) as client:
            stats = client.call(apply_options(options, stats_call()))
            changed = client.call(apply_options(options, list_changes(limit=1))).total
            disagreements = len(client.call(apply_options(options, links(limit=_LINKS))).links)
            sessions = client.call(apply_options(options, get_log(limit=1))).sessions
            status = client.call(GetStatus())
    except Unavailable:
        rows = [("daemon", "not running: memctl up")]
        show(args, {"namespace": namespace, "daemon": False}, lambda: _lay_out(_name_place(namespace), rows))
        return
    hooks = _list_installed()
    latest = sessions[0] if sessions else None
    paused = paused_text(status.pauses)
    state: dict[str, Any] = {
        "namespace": namespace,
        "daemon": True,
        "memories": stats.memories,
        "turns": stats.turns,
        "changes": changed,
        "disagreements": disagreements,
        "latest_session": latest,
        "hooks": hooks,
        "observing": paused or "everything",
    }
    rows = [
        ("daemon", _daemon_text(status)),
        ("to settle", _unsettled_text(changed, disagreements)),
        ("recorded", _hooks_text(hooks)),
        ("", paused),
        ("last session", shorten(_session_text(latest), columns() - _NAME_COLUMNS)),
    ]
    show(args, state, lambda: _lay_out(f"{_name_place(namespace)}: {_stored_text(stats)}.", rows))


def _limit_options(args: Namespace, namespace: str) -> Namespace:
    """Return the options for calls about a namespace and all inside it; for the root that is everything."""
    return Namespace(**{**vars(args), "namespace": namespace, "reach": "subtree"})


def _list_installed() -> dict[str, str]:
    """Return the agents with our hooks, installed for the user or for this folder's project, and their state."""
    places = (None, Path(project_root(os.getcwd())))
    states: dict[str, str] = {}
    for agent in HOSTS:
        targets = {target.path: target for place in places for target in installing.list_targets(agent, place)}
        present = {check_state(agent, target)["state"] for target in targets.values()} - {"not installed"}
        if present:
            states[agent] = "; ".join(sorted(present))
    return states


def _lay_out(head: str, rows: list[tuple[str, str]]) -> str:
    lines = [
        ("" if at else name, line)
        for name, text in rows
        for at, line in enumerate(wrap(text, columns() - _NAME_COLUMNS, _LINES))
        if text
    ]
    return f"{head}\n{format_fields(lines)}\n\n{summary_of_common()}\n\n{_MORE}"


def _name_place(namespace: str) -> str:
    """Return the namespace in bold, with the project's folder if it is the current one."""
    if not namespace:
        return paint("All projects", "bold")
    here = current_namespace() == namespace
    place = f" ({make_printable(shorten_home(project_root(os.getcwd())))})" if here else ""
    return f"{paint(make_printable(namespace), 'bold')}{place}"


def _stored_text(stats: Stats) -> str:
    if not stats.memories and not stats.turns:
        return "no memories yet"
    return count_stored(stats.memories, stats.turns, stats.by_tier)


def _daemon_text(status: Status) -> str:
    model = f"{status.model.name}, {status.model.state}"
    degraded = f"; degraded: {', '.join(status.degraded)}" if status.degraded else ""
    return f"up {duration_text(status.uptime_s)}; model {model}{degraded}"


def _unsettled_text(changed: int, disagreements: int) -> str:
    parts = []
    if changed:
        parts.append(f"{count_text(changed, 'change')} (memctl changes)")
    if disagreements:
        more = " or more" if disagreements == _LINKS else ""
        parts.append(f"{count_text(disagreements, 'contradiction')}{more} (memctl links)")
    return ", ".join(parts) or "nothing"


def _session_text(session: LoggedSession | None) -> str:
    if session is None:
        return "none yet"
    about = to_one_line(session.asked or session.summary)
    return f"{iso(session.ended_at)}, {count_text(session.turns, 'turn')}{f': {about}' if about else ''}"


def _hooks_text(hooks: dict[str, str]) -> str:
    if not hooks:
        return "no sessions: memctl hooks install AGENT"
    agents = (agent if state == "installed" else f"{agent} ({state})" for agent, state in hooks.items())
    return f"sessions of {', '.join(agents)}"
