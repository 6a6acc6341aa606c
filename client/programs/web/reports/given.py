"""What agents were given, by session, and what a person says of it: useful, wrong, never again."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from memoryd.client import protocol
from memoryd.client.programs.memctl.table import count_text, to_one_line
from memoryd.client.programs.web.reports import parts
from memoryd.client.transport.aio import AsyncClient

_SESSIONS = 20  # listed
_LINE_CHARS = 300
_NONE = "No agent was given anything yet. Hooks give memories when a session starts and beside prompts: "


async def read_given(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return the latest sessions with what each was given."""
    scope: dict[str, Any] = {"namespace": query.get("namespace", ""), "reach": query.get("reach")}
    sessions = await client.call(protocol.ListGiven(**scope, limit=_SESSIONS))
    shown = [_show_session(one) for one in sessions]
    return ["div", *(shown or [["div.empty", _NONE, ["code", "memctl hooks install claude-code"]]])]


def _show_session(one: protocol.GivenSession) -> parts.Part:
    facts = one.agent and parts.badge(one.agent), f"session {one.session[:24]}", parts.time(one.at)
    lines = (_show_line(one, line) for line in one.lines)
    return ["section.panel", ["h2", parts.place(one.namespace)], parts.line(*facts), *lines]


def _show_line(one: protocol.GivenSession, line: protocol.GivenLine) -> parts.Part:
    place = parts.place(line.namespace) if line.namespace != one.namespace else ""
    about = parts.line(parts.badge(line.type), place, parts.time(line.at), line.path)
    text = parts.link(line.id, to_one_line(line.text)[:_LINE_CHARS])
    return ["div.hit.said.line", ["div", text, about], ["div.acts", *_list_acts(one, line)]]


def _list_acts(one: protocol.GivenSession, line: protocol.GivenLine) -> list[parts.Part]:
    """Return the buttons of a line. A part of a file is corrected in the file, a turn of L0 is not rated."""
    fields = {"id": line.id, "reach": "all", "useful": True}
    useful = parts.act("Useful", "Rated as useful", "feedback", fields)
    wrong = parts.act("Wrong", "Deleted as wrong", "delete", {"ids": [line.id], "reach": "all"})
    asked = urlencode({"id": line.id, "namespace": one.namespace, "session": one.session})
    never = parts.emit("Never again", "never", asked)
    if line.tier == "documents":
        return [useful, parts.remark("It is wrong? Edit the file.")]
    return [wrong, never] if line.tier == "L0" else [useful, wrong, never]


async def read_never(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return what can be done so that something never comes up again: erasing it, and pausing where it came from."""
    id, namespace, session = (query.get(name, "") for name in ("id", "namespace", "session"))
    plan = await client.call(protocol.Erase(ids=[id], reach="all", dry_run=True))
    made = f" and {count_text(len(plan.derived), 'memory')} made of it" if plan.derived else ""
    erase = parts.act("Erase it for good", "Erased for good", "erase", {"ids": [id], "reach": "all"})
    pauses = [
        parts.act(text, "Observing is paused", "pause_observing", {"kind": kind, "name": name}, "resume_observing")
        for text, kind, name in (
            (f"Keep nothing more of {parts.place(namespace)}", "namespace", namespace),
            ("Keep nothing more of this session", "session", session),
        )
        if name or kind == "namespace"
    ]
    return [
        "div",
        ["b", "Never again"],
        parts.remark(f"Erasing takes this text{made} and its history off the disk; no undo brings it back."),
        ["div.acts", erase, *pauses, parts.emit("Cancel", "never", "")],
    ]
