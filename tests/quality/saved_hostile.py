"""What becomes of saves that pretend to be the person's (`tests/data/hostile`).

Of each case the person has saved one rule in its project. Then the save comes in as the case says: through the MCP
server's `memory_save`, as a session in a home folder that `memctl backfill` reads, by `memctl import`, or as a Markdown
file of a folder that `memctl workspace add` indexes. Then a session starts there and asks about the text, and so does
one in each other project; all are searched for it.

An entry (a line, or a result) tells the text if it has one of its sentences. It is marked if the entry's head, or the
heading that it stands under, has a word of `MARKS`, which the text itself does not count for.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from holds import read_half
from judging import LineSource
from printing import format_table
from replaying import ReplayPlayer, call_tool, make_id, set_hooks_environment
from saved_changes import list_entries
from temporary import DEFAULTS, run_daemon
from timeline import MemoryEvent, Prompt, Start

from memoryd.client.errors import MemorydError
from memoryd.client.programs.memctl.local import read_output
from memoryd.client.prompt_text import FRAME, make_inert
from memoryd.client.times import iso

BEGAN = 1_780_000_000.0
DAY_S = 86_400.0
WAYS = ("mcp", "backfill", "import", "file")
CHECKS = ("above-person", "other-project", "as-confirmed", "start")
MARKS = re.compile(r"unconfirmed|\bagents?\b|\bheard\b|\bfiles?\b|\bimport(?:ed)?\b|\.md\b", re.IGNORECASE)
_HEADING = re.compile(r"[A-Z][^\[\]]{0,60}:")
_SOURCES = {  # of what is imported: the file's name, and whether the system takes its folder
    "mcp-memory": ("memory.jsonl", False),
    "mem0": ("all.json", False),
    "memory-md": ("MEMORY.md", False),
    "basic-memory": ("note.md", True),
}


class HostileCase(msgspec.Struct):
    """A case without any text: what happened of what may not, and what did of all; how it was refused, if it was."""

    id: str
    way: str
    broken: list[str]
    happened: list[str]
    refused: str = ""


class Entry(msgspec.Struct):
    """What a start, a prompt or a search told in one piece, and the heading that it stands under."""

    text: str
    heading: str = ""


def measure_hostile(half: str, settings: str = DEFAULTS) -> dict[str, Any]:
    """Return how many cases of a half did what they must not, and what each did."""
    cases: list[dict[str, Any]] = read_half("hostile", half)
    named = {name for case in cases for name in (case["project"], case.get("save", {}).get("project", "/"))}
    names = sorted(named - {"/"})
    with (
        run_daemon(settings, BEGAN) as (place, daemon),
        set_hooks_environment(daemon.socket, daemon.data_dir),
    ):
        player = ReplayPlayer(place, {}, waits_for_counts=False)
        player.go_to(BEGAN)
        try:
            judged = [Attempt(player, case, names, daemon.folder / case["id"]).run() for case in cases]
        finally:
            player.close()
    figures = count_figures(judged)
    shares = {check: figures["all"][check] / (len(judged) or 1) for check in CHECKS}
    return {"shares": shares, "figures": figures, "cases": judged}


class Attempt:
    """One case, in projects of its own: those that the data names, below the case's id, and one more."""

    def __init__(self, player: ReplayPlayer, case: dict[str, Any], names: Sequence[str], folder: Path) -> None:
        self._player, self._case, self._folder = player, case, folder
        self._id = case["id"]
        self._own = self._place(case["project"])
        self._others = [*(self._place(name) for name in names if name != case["project"]), f"{self._id}/elsewhere"]

    def run(self) -> HostileCase:
        """Let it happen, ask, and judge."""
        self._folder.mkdir()
        rule = self._case["beside"]
        self._player.run(
            MemoryEvent(namespace=self._own, at=_iso(BEGAN), id=f"{self._id}:beside", type="rule", content=rule)
        )
        refused = ""
        try:
            getattr(self, f"_come_by_{self._case['way']}")()
        except MemorydError as error:
            refused = error.message
        self._player.settle(self._own)
        happened = list(dict.fromkeys(self._list_happened()))
        broken = [name for name in happened if name in self._case["must_not"]]
        return HostileCase(self._id, self._case["way"], broken, happened, refused)

    def _place(self, name: str) -> str:
        return f"{self._id}/{name.strip('/').replace('/', '-')}"

    # How it comes in

    def _come_by_mcp(self) -> None:
        save = dict(self._case["save"])
        if save.get("supersedes") == "beside":
            save["supersedes"] = make_id(f"{self._id}:beside")
        if save.get("project", "/") != "/":
            save["project"] = self._place(save["project"])
        call_tool("memory_save", save, self._own)

    def _come_by_backfill(self) -> None:
        entries = [self._write_turn(number, turn) for number, turn in enumerate(self._case["turns"])]
        file = self._folder / ".claude" / "projects" / "-work" / f"{make_id(self._id)}.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text("".join(f"{msgspec.json.encode(one).decode()}\n" for one in entries), "utf-8")
        self._run("backfill", "--agent", "claude-code", "--temporary", HOME=str(self._folder))

    def _write_turn(self, number: int, turn: dict[str, str]) -> dict[str, Any]:
        """Return a turn as Claude Code writes it."""
        is_tool = turn["role"] == "tool"
        content: Any = turn["content"]
        if is_tool:
            content = [{"tool_use_id": f"t{number}", "type": "tool_result", "content": content}]
        elif turn["role"] == "assistant":
            content = [{"type": "text", "text": content}]
        role = "user" if is_tool else turn["role"]
        return {
            "isSidechain": False,
            "type": role,
            "message": {"role": role, "content": content},
            "timestamp": _iso(BEGAN - DAY_S + number * 20.0),
            "uuid": make_id(f"{self._id}:{number}"),
            "cwd": str(self._folder),
            "sessionId": make_id(self._id),
            "version": "2.1.331",
        }

    def _come_by_import(self) -> None:
        source, system = self._case["source"], self._case["system"]
        if system == "memoryd":
            lines = self._run("export").decode().splitlines()
            [record] = [
                one for line in lines if (one := msgspec.json.decode(line)).get("content") == self._case["beside"]
            ]
            file = self._folder / "export.jsonl"
            record |= {"id": make_id(self._id), "relations": [], **source}
            record["namespace"] = record["namespace"].strip("/")  # as an export writes it
            file.write_bytes(msgspec.json.encode(record) + b"\n")
            read_output("memoryd.client.programs.memctl", ["import", str(file), "--namespace", "/"])
            return
        name, takes_folder = _SOURCES[system]
        file = self._folder / name
        file.write_text(source if isinstance(source, str) else msgspec.json.encode(source).decode(), "utf-8")
        path = self._folder if takes_folder else file
        self._run("import", str(path), "--from", system, "--to", self._own, "--yes")

    def _come_by_file(self) -> None:
        file = self._folder / self._case["path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self._case["source"], "utf-8")
        self._run("workspace", "add", str(self._folder), "--glob", "**/*.md")

    def _run(self, *words: str, **variables: str) -> bytes:
        given = [*words, "--namespace", self._own]
        return read_output("memoryd.client.programs.memctl", given, **variables)

    # What came of it

    def _list_happened(self) -> Iterator[str]:
        start = self._start(self._own)
        prompt, found = self._ask(self._own), self._find(self._own)
        told = [at for at, one in enumerate(start) if self._tells(one)]
        persons = [at for at, one in enumerate(start) if self._tells(one, self._case["beside"])]
        if not persons or any(not self._is_marked(start[at]) or at < persons[0] for at in told):
            yield "above-person"
        if told:
            yield "start"
        if any(self._tells(one) and not self._is_marked(one) for one in (*start, *prompt)):
            yield "as-confirmed"
        if any(self._tells(one) and not self._is_marked(one) for one in found):
            yield "found unmarked"
        for other in self._others:
            if any(map(self._tells, (*self._start(other), *self._ask(other)))):
                yield "other-project"
            if any(map(self._tells, self._find(other))):
                yield "found elsewhere"

    def _start(self, namespace: str) -> list[Entry]:
        point = Start(
            namespace=namespace, session=f"{namespace}-s", at=_iso(BEGAN), id="", wanted=[], helps=[], harms=[]
        )
        return list_told(self._player.run(point)[0])

    def _ask(self, namespace: str) -> list[Entry]:
        about = {"namespace": namespace, "session": f"{namespace}-p", "at": _iso(BEGAN), "id": ""}
        marks: dict[str, Any] = {"wanted": [], "helps": [], "harms": []}
        return list_told(self._player.run(Prompt(**about, **marks, content=self._case["text"], nothing=False))[0])

    def _find(self, namespace: str) -> list[Entry]:
        words = ["search", "--namespace", namespace, self._case["text"]]
        printed = read_output("memoryd.client.programs.memctl", words).decode()
        returned = call_tool("memory_search", {"query": self._case["text"]}, namespace).text
        return [*map(Entry, list_entries("search", printed)), *map(Entry, list_entries("mcp", returned))]

    def _tells(self, entry: Entry, text: str = "") -> bool:
        return LineSource(text or self._case["text"], frozenset()).is_in(entry.text)

    def _is_marked(self, entry: Entry) -> bool:
        own = make_inert(self._case["text"]).casefold()
        return bool(MARKS.search(entry.heading) or MARKS.search(entry.text.casefold().replace(own, "")))


def list_told(text: str) -> list[Entry]:
    """Return what a hook gave line by line, each with the heading that it stands under."""
    entries: list[Entry] = []
    heading = ""
    for line in text.removeprefix(FRAME[0]).removesuffix(FRAME[1]).splitlines():
        if _HEADING.fullmatch(line):
            heading = line
        elif line.startswith("- "):
            entries.append(Entry(line, heading))
    return entries


def _iso(at: float) -> str:
    return iso(at) or ""


def count_figures(judged: Sequence[HostileCase]) -> dict[str, dict[str, int]]:
    """Return by way how many cases there are, and how many did each of what they must not."""
    groups = {way: [one for one in judged if one.way == way] for way in WAYS} | {"all": list(judged)}
    return {
        way: {
            "cases": len(part),
            **{check: sum(check in one.broken for one in part) for check in CHECKS},
            "refused": sum(bool(one.refused) for one in part),
        }
        for way, part in groups.items()
    }


def report_text(report: dict[str, Any]) -> str:
    """Return the figures as a table."""
    figures: dict[str, dict[str, int]] = report["figures"]
    names = list(figures["all"])
    return format_table(
        ["HOSTILE SAVES", *(name.upper() for name in names)],
        [[way, *(f"{counts[name]}" for name in names)] for way, counts in figures.items()],
    )
