"""A home folder with past sessions of three agents, in the formats in which the real programs wrote the samples.

What is said is invented, or given: pairs of what a user asks and what an agent answers. Around it stands what the
programs write beside: thinking, calls of tools, their output. The same arguments make the same files.
"""

import json
import random
import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from memoryd.client.transport.batches import split_evenly

SaidPair = tuple[str, str]

START = 1_760_000_000.0
BETWEEN_S = 40.0
_THINGS = (
    "port,timeout,owner,database,region,queue,bucket,retry limit,log level,cache size,release day,token name".split(",")
)
_PARTS = "billing,search,mail,report,login,import,export,invoice,photo,map,chat,stock,order,audit,quota".split(",")
_PLACES = "staging,production,the test rig,the old cluster,the new cluster,the laptop image".split(",")
_VALUES = "Valkey,Postgres,eu-west,orange,Tuesday,Lena,silver,nightly,twelve,Mistral,kestrel,granite,juniper".split(",")
_WORK = "rename,split,test,document,move,simplify,review,profile,delete,port".split(",")
_OUTPUT = "ok   tests/test_{0}.py::test_{1} PASSED\n" * 12


class SpokenSession(NamedTuple):
    """A session that is to be in a home folder: its project, when it began, what was said."""

    project: str
    at: float
    said: list[SaidPair]


class MadeHome(NamedTuple):
    """What was made: how many sessions and turns, and by session its project, its name and what was said."""

    sessions: int
    turns: int
    said: list[tuple[str, str, list[SaidPair]]]


def invent(count: int, seed: int = 7) -> Iterator[SaidPair]:
    """Yield so many pairs; every third one asks for a fact that nothing else says."""
    random_ = random.Random(seed)
    for number in range(count):
        part, thing, place = random_.choice(_PARTS), random_.choice(_THINGS), random_.choice(_PLACES)
        value = f"{random_.choice(_VALUES)}-{number}"
        if number % 3 == 0:
            yield (
                f"What is the {thing} of the {part}{number} service on {place}?",
                f"The {thing} of the {part}{number} service on {place} is {value}; it was set in"
                f" config/{part}{number}.toml because the {random_.choice(_PARTS)} team asked for it.",
            )
        else:
            work = random_.choice(_WORK)
            yield (
                f"Please {work} the {part} module of ticket {number} so that {random_.choice(_PARTS)} can use the"
                f" {thing}.",
                f"I have done that for ticket {number}: the {part} module now reads the {thing} from {place},"
                f" {value} is gone, and {random_.randrange(2, 90)} tests of {random_.choice(_PARTS)} pass.",
            )


def make_home(
    home: Path, sessions: int, turns: int, pairs: Iterable[SaidPair] | None = None, projects: int = 8
) -> MadeHome:
    """Write so many sessions of Claude Code, Codex and Gemini CLI with so many turns in all."""
    each = turns // sessions // 2
    said = list(pairs) if pairs is not None else list(invent(sessions * each))
    parts = list(split_evenly(said, each))[:sessions]
    return write_home(
        home,
        (
            SpokenSession(f"project{number % projects}", START + number * 40_000.0, of_one)
            for number, of_one in enumerate(parts)
        ),
    )


def write_home(home: Path, sessions: Iterable[SpokenSession]) -> MadeHome:
    """Write sessions as Claude Code, Codex and Gemini CLI do, by turns; a word that is empty was not said."""
    made, random_ = MadeHome(0, 0, []), random.Random(11)
    for number, session in enumerate(sessions):
        folder = home / "work" / session.project
        (folder / ".git").mkdir(parents=True, exist_ok=True)
        write = (_write_claude_code, _write_codex, _write_gemini)[number % 3]
        id = uuid.UUID(int=random_.getrandbits(128), version=4)
        write(home, folder, id, session.at, session.said)
        made.said.append((folder.name, str(id), session.said))
    turns = sum(bool(text) for _, _, pairs in made.said for pair in pairs for text in pair)
    return made._replace(sessions=len(made.said), turns=turns)


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _write_claude_code(home: Path, folder: Path, id: uuid.UUID, at: float, pairs: Sequence[SaidPair]) -> None:
    place = str(folder).replace("/", "-").replace(".", "-")
    lines: list[dict[str, Any]] = []

    def add(role: str, content: Any, at: float) -> None:
        entry = {
            "isSidechain": False,
            "type": role,
            "message": {"role": role, "content": content},
            "timestamp": _iso(at),
        }
        own = uuid.uuid5(id, str(len(lines)))
        lines.append({**entry, "uuid": str(own), "cwd": str(folder), "sessionId": str(id), "version": "2.1.331"})

    for number, (asked, answered) in enumerate(pairs):
        begun = at + number * BETWEEN_S
        add("user", asked, begun)
        add("assistant", [{"type": "thinking", "thinking": f"I think about {asked}", "signature": ""}], begun + 2)
        add("assistant", [{"type": "text", "text": "Let me look at the code first."}], begun + 3)
        call = {"type": "tool_use", "id": f"t{number}", "name": "Write"}
        add(
            "assistant",
            [{**call, "input": {"file_path": f"{folder}/src/a{number}.py", "content": "x = 1\n"}}],
            begun + 4,
        )
        result = _OUTPUT.format(number, number)
        add("user", [{"tool_use_id": f"t{number}", "type": "tool_result", "content": result}], begun + 5)
        add("assistant", [{"type": "text", "text": answered}], begun + 9)
    _write_lines(home / ".claude" / "projects" / place / f"{id}.jsonl", lines)


def _write_codex(home: Path, folder: Path, id: uuid.UUID, at: float, pairs: Sequence[SaidPair]) -> None:
    head = {"id": str(id), "timestamp": _iso(at), "cwd": str(folder), "cli_version": "0.169.0", "source": "cli"}
    lines: list[dict[str, Any]] = [{"timestamp": _iso(at), "type": "session_meta", "payload": head}]

    def add(item: dict[str, Any], at: float) -> None:
        lines.append({"timestamp": _iso(at), "type": "response_item", "payload": item})

    def say(role: str, kind: str, text: str, at: float) -> None:
        add({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}, at)

    say("user", "input_text", f"<environment_context>\n  <cwd>{folder}</cwd>\n</environment_context>", at)
    for number, (asked, answered) in enumerate(pairs):
        begun = at + number * BETWEEN_S
        say("user", "input_text", asked, begun)
        add({"type": "reasoning", "summary": [{"type": "summary_text", "text": f"About {asked}"}]}, begun + 1)
        say("assistant", "output_text", "I will run the tests.", begun + 2)
        call = {
            "type": "function_call",
            "name": "exec_command",
            "call_id": f"c{number}",
            "arguments": '{"cmd": "pytest"}',
        }
        add(call, begun + 3)
        output = _OUTPUT.format(number, number)
        add({"type": "function_call_output", "call_id": f"c{number}", "output": output}, begun + 5)
        say("assistant", "output_text", answered, begun + 9)
    day = datetime.fromtimestamp(at, UTC)
    name = f"rollout-{day:%Y-%m-%dT%H-%M-%S}-{id}.jsonl"
    _write_lines(home / ".codex" / "sessions" / f"{day:%Y/%m/%d}" / name, lines)


def _write_gemini(home: Path, folder: Path, id: uuid.UUID, at: float, pairs: Sequence[SaidPair]) -> None:
    lines: list[dict[str, Any]] = [{"sessionId": str(id), "startTime": _iso(at), "kind": "main"}]
    for number, (asked, answered) in enumerate(pairs):
        begun = at + number * BETWEEN_S
        ids = [str(uuid.uuid5(id, f"{number}{part}")) for part in "abc"]
        lines.append({"id": ids[0], "timestamp": _iso(begun), "type": "user", "content": [{"text": asked}]})
        given = {"file_path": f"{folder}/src/b{number}.py", "content": "y = 2\n"}
        call = {"id": f"w{number}", "name": "write_file", "args": given, "status": "success"}
        before = {"id": ids[1], "timestamp": _iso(begun + 2), "type": "gemini", "content": "First a file."}
        lines.append({**before, "thoughts": [{"subject": "Plan", "description": asked}], "toolCalls": [call]})
        lines.append({"id": ids[2], "timestamp": _iso(begun + 9), "type": "gemini", "content": answered})
        lines.append({"$set": {"lastUpdated": _iso(begun + 9)}})
    place = home / ".gemini" / "tmp" / folder.name
    _write_lines(place / "chats" / f"session-{_iso(at)[:16].replace(':', '-')}-{str(id)[:8]}.jsonl", lines)
    (place / ".project_root").write_text(str(folder))
