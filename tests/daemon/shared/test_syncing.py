"""memctl sync between two real daemons over a real ssh."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from machine import Machine

from memoryd.client.protocol import AddMany, NewMemory
from sshd import Sshd
from waiting import wait_until

CUTTER = f"{sys.executable} {Path(__file__).with_name('cutting.py')}"


def sync(laptop: Machine, home: Machine, *words: str) -> Any:
    return json.loads(laptop.say("sync", "place", "--memctl", home.memctl, "--json", *words))


def count(outcome: Any) -> dict[str, int]:
    numbers = {
        name: outcome[name] if name == "added" else len(outcome[name]) for name in outcome if name != "operation"
    }
    return {name: number for name, number in numbers.items() if number}


def test_two_machines_come_to_the_same_memories(laptop: Machine, home: Machine) -> None:
    one = laptop.add("Said on the laptop", "shop").id
    home.add("Said at home", "desk")
    laptop.say("add", "The key is sk-ant-api03-" + "a1B2" * 22 + "-QwErTyAA", "--allow-secrets", "--namespace", "/")
    foreseen = sync(laptop, home, "--dry-run")
    assert (count(foreseen["here"]), count(foreseen["there"])) == ({"added": 1}, {"added": 2})
    assert len(home.list_texts()) == 1
    assert "On place: 2 added." in laptop.say("sync", "place", "--memctl", home.memctl)
    assert laptop.list_texts() == home.list_texts()
    assert "sk-ant-api03-a1B2" in " ".join(home.list_texts())
    report = sync(laptop, home)
    assert (report["same"], count(report["here"]), count(report["there"])) == (3, {}, {})

    home.say("update", one[:8], "--content", "Changed at home")
    home.say("delete", home.add("Deleted at home", "desk").id[:8])
    report = sync(laptop, home)
    assert (report["here"]["changed"], count(report["there"])) == ([one], {})
    laptop.say("erase", one[:8], "--yes")
    assert sync(laptop, home)["there"]["erased"] == [one]
    assert laptop.list_texts() == home.list_texts()
    assert "Changed at home" not in home.run("history", one[:8]).stdout


def test_one_namespace_is_synced_alone_and_shared_roots_not_at_all(laptop: Machine, home: Machine) -> None:
    home.say("shared", "create", "acme", "--repo", "github.com/acme/*")
    for machine in (home, laptop):
        for namespace in ("shop/web", "desk", "acme/api"):
            machine.add(f"{machine.folder.name} in {namespace}", namespace)
    sync(laptop, home, "--namespace", "shop")
    assert home.list_texts("shop") == laptop.list_texts("shop") == ["home in shop/web", "laptop in shop/web"]
    assert home.list_texts("desk") == ["home in desk"]
    sync(laptop, home)
    assert home.list_texts("desk") == laptop.list_texts("desk") == ["home in desk", "laptop in desk"]
    assert home.list_texts("acme") == ["home in acme/api"]
    assert laptop.list_texts("acme") == ["laptop in acme/api"]


def test_what_stands_in_the_way_is_said_in_a_sentence_and_changes_nothing(
    laptop: Machine, home: Machine, sshd: Sshd
) -> None:
    laptop.add("Said on the laptop", "shop")
    home.add("Said at home", "shop")
    home.say("token", "add", "ada", "--namespace", "shop", "--role", "reader")

    def refuse(memctl: str = home.memctl, host: str = "place", *words: str) -> str:
        said = laptop.refuse("sync", host, "--memctl", memctl, *words)
        assert said.count("\n") == 1
        assert [*laptop.list_texts(), *home.list_texts()] == ["Said on the laptop", "Said at home"]
        return said

    assert refuse(host="nowhere.invalid").endswith("`ssh HOST true` has to work without a question.\n")
    assert "`memctl sync --memctl PATH`" in refuse("no-such-memctl")
    assert "no memoryd" in refuse("echo Welcome; echo")
    missing = "memctl: TOKEN is missing; for example: memctl serve-stdio anna"
    assert "place has an older memctl, which cannot serve this: update" in refuse(f"echo '{missing}' >&2; false")
    older = laptop.folder / "older"
    older.write_text(
        "import sys, msgspec\nfrom memoryd.client.transport.frames import FrameReader, frame\n"
        "def say(*words): sys.stdout.buffer.write(frame(msgspec.msgpack.encode(words))); sys.stdout.flush()\n"
        "say(0, 0, {'name': '', 'namespace': '', 'role': 'owner', 'protocol': 1})\n"
        "reader = FrameReader()\n"
        "while data := sys.stdin.buffer.raw.read(9999):\n"
        "    for payload in reader.feed(data):\n"
        "        say(1, msgspec.msgpack.decode(payload)[1], 'unknown_method', 'There is no method.')\n"
    )
    assert "older than this memctl" in refuse(f"{sys.executable} {older} #")
    laptop.process.environment["CLAUDECODE"] = "1"
    assert "in a terminal of your own" in refuse()
    del laptop.process.environment["CLAUDECODE"]
    laptop.process.environment["MEMORYD_OFFLINE"] = "1"
    assert "`offline` is set" in refuse()
    del laptop.process.environment["MEMORYD_OFFLINE"]
    sshd.allow(f"{home.memctl} serve-stdio ada")
    assert "its token ada (reader of shop) alone" in refuse()


@pytest.mark.slow
def test_a_line_that_is_cut_anywhere_loses_nothing_and_the_next_run_does_the_rest(
    laptop: Machine, home: Machine
) -> None:
    for machine in (laptop, home):
        for number in range(8):
            machine.add(f"{machine.folder.name} says {number} of eight", "shop")
    ends, last = set(), {}
    for number in range(20):
        done = laptop.run("sync", "place", "--memctl", f"{CUTTER} {home.memctl}")
        ends.add(done.returncode)
        assert "Traceback" not in done.stderr
        with random.choice((laptop, home)).process.client("shop") as client:
            id = random.choice(list(client.list(limit=100))).id
            last[id] = client.update(id, content=f"Change {number}").memory.content
    assert ends == {0, 3}  # some were cut
    sync(laptop, home)
    assert laptop.list_texts() == home.list_texts()
    assert len(laptop.list_texts()) == 16
    assert {*last.values()} <= {*home.list_texts()}


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["home", "laptop"])
def test_a_daemon_that_is_killed_in_the_middle_loses_nothing(laptop: Machine, home: Machine, killed: str) -> None:
    with laptop.process.client("shop") as client:
        for start in range(0, 3000, 500):
            memories = [NewMemory(content=f"Number {number} of many") for number in range(start, start + 500)]
            client.call(AddMany(memories=memories, dedup=False))
    home.add("Said at home", "shop")
    machine = {"home": home, "laptop": laptop}[killed]
    command = [sys.executable, "-m", "memoryd.client.programs.memctl", "sync", "place", "--memctl", home.memctl]
    environment = {**laptop.process.environment, "HOME": str(laptop.folder)}
    running = subprocess.Popen([*command, "--no-autostart"], env=environment, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(home.list_texts()) > 50)
    machine.process.kill()
    _, said = running.communicate(timeout=100)
    assert "Traceback" not in said
    machine.process.start()
    sync(laptop, home)
    report = sync(laptop, home)
    assert (report["same"], count(report["here"]), count(report["there"])) == (3001, {}, {})
