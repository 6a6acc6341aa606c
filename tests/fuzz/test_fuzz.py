"""Random and nearly right input for all that is parsed: `make fuzz` gives each target ten minutes.

Each target gets what people and programs send, with pieces exchanged, and bytes of no meaning. Whatever comes, it
answers in its own errors. Without `FUZZ_S` each takes a short look.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from memoryd.client.errors import Invalid, MemorydError
from memoryd.client.programs.hooks import answering
from memoryd.client.programs.hooks.hosts import EVENTS, HOSTS
from memoryd.client.programs.importing import child
from memoryd.client.programs.importing.records import Account
from memoryd.client.programs.importing.systems import SYSTEMS
from memoryd.client.transport.frames import FrameReader
from memoryd.daemon.server import envelope
from memoryd.daemon.workspaces.documents.chunks import chunk
from memoryd.daemon.workspaces.documents.front import parse_front_matter
from wire import Wire, packed
from workbench import Daemon

FUZZ_S = float(os.environ.get("FUZZ_S", "0"))
EXAMPLES = 2_000 if FUZZ_S else 40
DATA = Path(__file__).parent.parent / "data"
GOLDEN = Path(__file__).parent.parent / "contract" / "golden.jsonl"
pytestmark = pytest.mark.timeout(int(FUZZ_S) + 300)

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
NAMES = st.text(max_size=9) | st.sampled_from(["id", "ids", "memory", "content", "namespace", "reach", "limit"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
EDITS = st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 2), st.binary(max_size=6)), max_size=6)


def look(target: Callable[[Any], None], strategy: st.SearchStrategy[Any]) -> None:
    """Try a target with examples, again and again while there is time."""
    give_up_at = time.monotonic() + FUZZ_S
    tried = 0

    def attempt(value: Any) -> None:
        nonlocal tried
        tried += 1
        target(value)

    unhurried = settings(
        max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=False
    )
    while True:
        seed(random.getrandbits(32) if FUZZ_S else 1)(unhurried(given(strategy)(attempt)))()
        if time.monotonic() >= give_up_at:
            break
    print(f"{tried} tried")


def edit(data: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    """Return bytes with some inserted, replaced and cut out."""
    changed = bytearray(data)
    for at, kind, piece in edits:
        at %= len(changed) + 1
        changed[at : at + len(piece) * kind] = piece if kind < 2 else b""
    return bytes(changed)


def exchange(value: Any, path: list[int], other: Any) -> Any:
    """Return a value with one part, at the end of a path of choices, replaced."""
    if not path or not isinstance(value, dict | list) or not value:
        return other
    keys = list(value) if isinstance(value, dict) else range(len(value))
    at = keys[path[0] % len(keys)]
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[at] = exchange(value[at], path[1:], other)
    return changed


def read_requests() -> list[Any]:
    lines = map(msgspec.json.decode, GOLDEN.read_bytes().splitlines())
    # What ends, restarts or replaces the daemon, or waits for what happens, is no target here.
    left_out = {"shutdown", "restart", "subscribe", "use_model", "add_workspace", "run_job", "backup", "dream"}
    found = [line["value"][2] for line in lines if ": request" in line["name"]]
    return [call for call in found if call["method"] not in left_out]


CHANGED = st.tuples(st.lists(st.integers(0, 30), min_size=1, max_size=4), VALUES)


def test_frames() -> None:
    frames = [packed(msgspec.msgpack.encode([1, 7, call])) for call in read_requests()]

    def feed(given: tuple[bytes, list[tuple[int, int, bytes]]]) -> None:
        try:
            for payload in FrameReader().feed(edit(*given)):
                envelope.call_of(envelope.decode_request(payload))
        except MemorydError:
            pass

    look(feed, st.tuples(st.sampled_from(frames) | st.binary(max_size=200), EDITS))


def test_calls(daemon: "Daemon") -> None:
    calls = read_requests()

    def ask(given: tuple[Any, list[tuple[list[int], Any]]]) -> None:
        call = given[0]
        for path, other in given[1]:
            call = exchange(call, path, other)
        with Wire(daemon.socket) as wire:
            wire.send(packed(msgspec.msgpack.encode([1, 7, call])))
            while (reply := wire.receive()) and reply[0] == 2:
                pass
            assert reply, "no answer"
            assert reply[0] == 0 or reply[2] != "internal", (call, reply)

    look(ask, st.tuples(st.sampled_from(calls), st.lists(CHANGED, max_size=2)))


def test_markdown() -> None:
    texts = [path.read_text() for path in sorted(Path(__file__).parents[2].glob("*.md"))]

    def read(given: tuple[str, str, int, int]) -> None:
        text, piece, at, limit = given
        place = at % (len(text) + 1)
        text = f"{text[place : place + 5_000]}{piece}{text[:place][-2_000:]}"
        chunks = chunk(text, limit, 80)
        assert all(one.start_line <= one.end_line for one in chunks)

    marks = st.sampled_from(["```", "\n- ", "\n> ", "---\n", "\n# ", "<!--", "|", "\r", "\0", "~~~", "\t", "[", "]("])
    pieces = st.lists(marks | st.text(max_size=8), max_size=20).map("".join)
    look(read, st.tuples(st.sampled_from(texts), pieces, st.integers(0, 10**6), st.integers(100, 2000)))


def test_front_matter() -> None:
    heads = ["type: decision\ntags: [a, b]\npinned: true\nexpires: 2026-03-31", "tags:\n- a\n- b", "a: &x [1]\nb: *x"]

    def read(given: tuple[str, list[tuple[int, int, bytes]]]) -> None:
        head = edit(given[0].encode(), given[1]).decode(errors="replace")
        parse_front_matter(f"---\n{head}\n---\nbody".split("\n"))

    look(read, st.tuples(st.sampled_from(heads) | st.text(), EDITS))


def test_hooks() -> None:
    samples = list(read_events())

    def read(given: tuple[tuple[str, Any], str, list[tuple[list[int], Any]]]) -> None:
        (agent, value), event, changes = given
        for path, other in changes:
            value = exchange(value, path, other)
        try:
            data = msgspec.json.encode(value)
        except (msgspec.MsgspecError, UnicodeEncodeError, ValueError):
            return
        if not isinstance(value, dict):
            return
        asked = answering.read_event(event, agent, data)
        answering.list_edited(asked)
        answering.list_calls(asked)
        answering.list_written(asked)

    look(read, st.tuples(st.sampled_from(samples), st.sampled_from(list(EVENTS)), st.lists(CHANGED, max_size=3)))


def read_events() -> Iterator[tuple[str, Any]]:
    tool = {"file_path": "/a/b.py", "content": "x"}
    for agent in HOSTS:
        yield (
            agent,
            {
                "session_id": "s",
                "cwd": "/",
                "prompt": "What do we use?",
                "transcript_path": "/none",
                "tool_name": "Write",
                "tool_input": tool,
                "source": "startup",
                "reason": "exit",
                "last_assistant_message": "Valkey",
            },
        )


SAMPLES = {
    "mcp-memory": "memory.jsonl",
    "mem0": "mem0/get_all.json",
    "claude-mem": "claude-mem.db",
    "memori": "memori.db",
    "basic-memory": "basic-memory/memory.db",
}


@pytest.mark.parametrize("system", SAMPLES)
def test_imports(system: str, tmp_path: Path) -> None:
    sample = (DATA / "imports" / SAMPLES[system]).read_bytes()
    file = tmp_path / Path(SAMPLES[system]).name
    module = __import__(f"memoryd.client.programs.importing.{SYSTEMS[system].module}", fromlist=["read"])

    def read(edits: list[tuple[int, int, bytes]]) -> None:
        file.write_bytes(edit(sample, [(at * 37, kind, piece) for at, kind, piece in edits]))
        account = Account(system, "", confirmed=False)
        try:
            for _ in child._read_items(module.read(file, account), file):
                pass
        except (Invalid, RecursionError):
            pass

    look(read, EDITS)
