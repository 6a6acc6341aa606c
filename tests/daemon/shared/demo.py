"""A team in a minute: two people, one repository, one memory. `make demo-team` runs it.

The three machines are folders here, each with a daemon, a configuration and a home of its own; what they say to each
other goes over ssh. It ends with 1 at the first step that does not do what it says.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

sys.path.append(str(Path(__file__).parents[2]))  # tests
from machine import Machine

from hosting import Agent
from memoryd.client.programs.memctl.output import paint, say
from memoryd.client.programs.memctl.private_daemon import make_guarded_folder
from sshd import Sshd
from waiting import wait_until

REPOSITORY = "git@github.com:acme/api.git"
DECISION = "We use Valkey, not Redis, as the session cache, because of the licence."
QUESTION = "which session cache did we choose, Valkey or Redis?"
MISSING = "shared:acme"
LATER = "Deploys to production run on Tuesdays at 14:00 UTC, never on a Friday."
WHEN = "when do deploys run?"
HERE = ["L1", "L2", "waiting"]  # the tiers of one machine

M = TypeVar("M", bound=Machine)


class LocalSsh:
    """Where no sshd runs: a program called `ssh` that runs each command on this machine; stopped, it refuses."""

    def __init__(self, folder: Path) -> None:
        self.programs, self._away = folder / "bin", folder / "away"
        self.programs.mkdir()
        script = f"""#!/bin/sh
[ -e {self._away} ] && echo "ssh: connect to host home: Connection refused" >&2 && exit 255
for last; do :; done
exec /bin/sh -c "$last"
"""
        (self.programs / "ssh").write_text(script)
        (self.programs / "ssh").chmod(0o755)

    def start(self) -> None:
        self._away.unlink(missing_ok=True)

    def stop(self) -> None:
        self._away.touch()


class Person(Machine):
    """A machine with a checkout of the repository, and the agent that works in it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.name, self.project = folder.name, self.checkout("api", REPOSITORY)
        self._sessions = 0

    def save(self, text: str) -> Any:
        return json.loads(self.say("add", text, "--type", "decision", "--json", folder=self.project))

    def search(self, query: str) -> list[str]:
        """Return the texts that are found, and what is missing of the root."""
        with self.process.client("acme/api") as client:
            found = client.search(query)
        return [*(hit.content for hit in found), *(part for part in found.degraded if part == MISSING)]

    def ask_agent(self, query: str) -> list[str]:
        """Return what the agent's tool `memory_search` finds: the MCP server, run in the checkout."""
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "demo", "version": "1"}}
        said: list[dict[str, Any]] = [
            {"id": 1, "method": "initialize", "params": about},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": "memory_search", "arguments": {"query": query}}},
        ]
        lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in said)
        done = self.run("mcp", folder=self.project, input=lines)
        replies = [json.loads(line) for line in done.stdout.splitlines()]
        [found] = [reply["result"] for reply in replies if reply.get("id") == 2]
        return [memory["text"] for memory in found["structuredContent"]["memories"]]

    def begin_session(self) -> str:
        """Return what the agent is told at the start of a new session: the hook, run as the host does."""
        self._sessions += 1
        agent = Agent("claude-code", self.folder, self.project, f"{self.name}-{self._sessions}")
        return agent.hook("session-start", source="startup").said


class Team:
    """The place and the two people."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._stack = stack
        try:
            self.ssh: Sshd | LocalSsh = Sshd(folder / "sshd")
            self.way = f"a real sshd on 127.0.0.1, port {self.ssh.port}"
        except pytest.skip.Exception as error:
            self.ssh = LocalSsh(folder)
            self.way = f"NOT ssh ({error}): a program of that name runs each command on this machine"
        stack.callback(self.ssh.stop)
        os.environ["PATH"] = f"{self.ssh.programs}:{os.environ['PATH']}"
        self.home = self._run(Machine(folder / "home"))
        self.ada, self.ben = self._run(Person(folder / "ada")), self._run(Person(folder / "ben"))

    def _run(self, machine: M) -> M:
        self._stack.callback(machine.process.stop)
        return machine

    def count_there(self, text: str) -> int:
        return self.home.list_texts("acme").count(text)


def tell(text: str) -> None:
    say(f"   {text}")


def check(what: str, is_so: bool) -> None:
    tell(f"{what}: {paint('yes', 'green') if is_so else paint('NO', 'red')}")
    if not is_so:
        raise SystemExit(1)


def check_soon(what: str, is_so: Callable[[], bool]) -> None:
    """Check what a line that is being opened brings."""
    try:
        wait_until(is_so)
    except AssertionError:
        check(what, False)
    check(what, True)


def set_up(team: Team) -> None:
    team.home.say("shared", "create", "acme", "--repo", "github.com/acme/*")
    tell("home   memctl shared create acme --repo 'github.com/acme/*'")
    for person in (team.ada, team.ben):
        team.home.say("token", "add", person.name, "--namespace", "acme")
        words = ("shared", "join", "acme", "--server", "ssh://home", "--token", person.name)
        person.say(*words, "--memctl", team.home.memctl, "--yes")
        tell(f"{person.name}    memctl {' '.join(words)}")
    tell(f"The way between them is {team.way}.")
    for person in (team.ada, team.ben):
        check_soon(f"The line of {person.name} is open", partial(lambda one: not one.search("open"), person))


def share(team: Team) -> None:
    tell(f"ada    memctl add “{DECISION}”")
    added = team.ada.save(DECISION)
    check("It went to home", (added["shared"], team.count_there(DECISION)) == ("acme", 1))
    check("ada's machine does not have it", team.ada.list_texts(tier=HERE) == [])
    tell(f"ben's agent   memory_search “{QUESTION}”")
    check("It finds what ada saved", team.ben.ask_agent(QUESTION) == [DECISION])
    check("A session of ben's agent does not begin with it: ada's words are not ben's", DECISION not in begin(team))
    team.ben.say("confirm", added["id"])
    tell(f"ben    memctl confirm {added['id'][:8]}")
    check_soon("Now a session of ben's agent begins with it", lambda: DECISION in begin(team))


def begin(team: Team) -> str:
    return str(team.ben.begin_session())


def revoke(team: Team) -> None:
    team.home.say("token", "revoke", "ben")
    tell("home   memctl token revoke ben")
    check("ben's next search finds nothing, and says what is missing", team.ben.search(QUESTION) == [MISSING])
    check("Neither does his agent", team.ben.ask_agent(QUESTION) == [])
    check("Nor is it told when a session begins", DECISION not in begin(team))


def go_away(team: Team) -> None:
    team.ssh.stop()
    team.home.process.stop()
    tell("home   is off")
    tell(f"ada    memctl add “{LATER}”")
    check("It waits on ada's machine", team.ada.save(LATER)["waiting"])
    check("It is found there, and the search says what is missing", team.ada.search(WHEN) == [LATER, MISSING])


def come_back(team: Team) -> None:
    team.home.process.start()
    team.ssh.start()
    tell("home   is on again")
    tell("ada    memctl shared waiting --send")
    check_soon("Nothing waits any more", lambda: not json.loads(team.ada.say("shared", "waiting", "--send", "--json")))
    check("home has it, once", team.count_there(LATER) == 1)
    check("ada's machine has it no more", team.ada.list_texts(tier=HERE) == [])
    check("It is found from there", team.ada.search(WHEN) == [LATER])


STEPS: tuple[tuple[str, Callable[[Team], None]], ...] = (
    ("A place and two people, each with a checkout of one repository", set_up),
    ("ada saves a decision, ben's agent finds it", share),
    ("ben leaves the team", revoke),
    ("The place goes away: a save waits", go_away),
    ("The place comes back", come_back),
)


def main() -> int:
    """Run the steps; return 1 if one fails."""
    began = time.monotonic()
    say(paint("A team in a minute: two people, one repository, one memory", "bold"))
    with make_guarded_folder() as folder, ExitStack() as stack:
        try:
            team = Team(folder, stack)
            for number, (heading, step) in enumerate(STEPS, 1):
                say(f"\n{paint(f'{number}. {heading}', 'bold')}")
                step(team)
        except (AssertionError, subprocess.SubprocessError) as error:
            say(f"   {paint('It failed', 'red')}: {error}")
            return 1
    say(f"\nThe daemons have stopped and {folder} is removed; {time.monotonic() - began:.0f} s in all.")
    say("Your turn: docs/sharing.md.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
