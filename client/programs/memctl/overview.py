"""What `memctl` by itself says in a project: what is known of it, and what to type next."""

import os
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoryd.client.calls import stats as stats_call
from memoryd.client.errors import Unavailable
from memoryd.client.methods import get_log, list_changes
from memoryd.client.programs.hooks import installing
from memoryd.client.programs.hooks.commands import check_state
from memoryd.client.programs.hooks.hosts import HOSTS
from memoryd.client.programs.memctl.link import apply_options, client_for, namespace_of
from memoryd.client.programs.memctl.output import columns, make_printable, paint, paused_text, show
from memoryd.client.programs.memctl.place import shorten_home
from memoryd.client.programs.memctl.table import count_stored, count_text, format_fields, shorten, to_one_line
from memoryd.client.projects.project import current_namespace, project_root
from memoryd.client.protocol import GetStatus, LoggedSession, Stats
from memoryd.client.times import iso

_NAME_COLUMNS = 18  # of the lines below the first


def is_about_project(args: Namespace) -> bool:
    """Return whether the options or the current folder name a project to speak of."""
    return bool(namespace_of(args))


def show_project(args: Namespace) -> None:
    """Print what is known of the project in a few lines; without a daemon one sentence."""
    namespace = namespace_of(args)
    there = _place_options(args, namespace)
    try:
        with client_for(there, autostart=False) as client:
            stats = client.call(apply_options(there, stats_call()))
            changed = client.call(apply_options(there, list_changes(limit=1))).total
            sessions = client.call(apply_options(there, get_log(limit=1))).sessions
            paused = paused_text(client.call(GetStatus()).pauses)
    except Unavailable:
        project = make_printable(namespace)
        sentence = f"No daemon runs; start one with `memctl up`, and `memctl` says what it knows of {project}."
        show(args, {"namespace": namespace, "daemon": False}, lambda: sentence)
        return
    hooks = _list_installed()
    latest = sessions[0] if sessions else None
    known: dict[str, Any] = {
        "namespace": namespace,
        "daemon": True,
        "memories": stats.memories,
        "turns": stats.turns,
        "changes": changed,
        "latest_session": latest,
        "hooks": hooks,
        "observing": paused or "everything",
    }
    show(args, known, lambda: "\n".join(_describe(namespace, stats, changed, latest, hooks, paused)))


def _place_options(args: Namespace, namespace: str) -> Namespace:
    """Return the options for calls about a namespace and all below it."""
    return Namespace(**{**vars(args), "namespace": namespace, "reach": "subtree"})


def _list_installed() -> dict[str, str]:
    """Return the agents that have our hooks, everywhere or in the project of this folder, and their state."""
    places = (None, Path(project_root(os.getcwd())))
    states: dict[str, str] = {}
    for agent in HOSTS:
        targets = {target.path: target for place in places for target in installing.list_targets(agent, place)}
        present = {check_state(agent, target)["state"] for target in targets.values()} - {"not installed"}
        if present:
            states[agent] = "; ".join(sorted(present))
    return states


def _describe(
    namespace: str, stats: Stats, changed: int, latest: LoggedSession | None, hooks: dict[str, str], paused: str
) -> Iterator[str]:
    kept = (
        count_stored(stats.memories, stats.turns, stats.by_tier)
        if stats.memories or stats.turns
        else "nothing is kept yet"
    )
    here = current_namespace() == namespace
    place = f" ({make_printable(shorten_home(project_root(os.getcwd())))})" if here else ""
    yield f"{paint(make_printable(namespace), 'bold')}{place}: {kept}."
    rows = [("latest session", _session_text(latest)), ("hooks", _hooks_text(hooks)), ("observing", paused)]
    if changed:
        rows.insert(1, ("changes", f"{count_text(changed, 'saved memory')} to settle: memctl changes"))
    yield format_fields([row for row in rows if row[1]])
    if stats.memories or stats.turns:
        yield 'Next: memctl search "…", memctl log, memctl list. All commands: memctl --help'
    else:
        yield 'Next: memctl add "…". All commands: memctl --help'


def _session_text(session: LoggedSession | None) -> str:
    if session is None:
        return "none yet"
    about = to_one_line(session.asked or session.summary)
    text = f"{iso(session.ended_at)}, {count_text(session.turns, 'turn')}{f': {about}' if about else ''}"
    return shorten(text, columns() - _NAME_COLUMNS)


def _hooks_text(hooks: dict[str, str]) -> str:
    if not hooks:
        return "none; `memctl hooks install AGENT` adds them"
    return ", ".join(agent if state == "installed" else f"{agent} ({state})" for agent, state in hooks.items())
