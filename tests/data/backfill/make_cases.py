"""Make the sessions of `cases/claude-code`: the real program in a terminal, a person's keys, a scripted model.

    python tests/data/backfill/make_cases.py PATH_OF_CLAUDE [CASE …]

Each case is one or more sessions of one project, which is called /home/me/billing in what is kept. Attachments are kept
as what they are alone, without their content, but for words that were queued; long texts are cut.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from terminal import CLEAR_LINE, DOWN, ENTER, ESCAPE, TAB, UP, Model, Said, Terminal

HERE = Path(__file__).parent / "cases" / "claude-code"
KEY = "sk-ant-none-000000000000000000000"
PLAN = "# Plan: move the queue\n\n1. Stop the old workers.\n2. Start the new ones.\n"
LONGEST = 1500
QUESTION = {
    "question": "Which port shall staging use?",
    "header": "Port",
    "multiSelect": False,
    "options": [{"label": "5433", "description": "as before"}, {"label": "6000", "description": "new"}],
}


def answer(last: str, asked: str) -> list[Said]:
    """Return what the model says: by what was said last, and by the results of tools."""
    plan = re.findall(r"(/[^\s\"\\]+/plans/[^\s\"\\]+\.md)", asked)
    rules: list[tuple[bool, list[Said]]] = [
        ("docs folder" in last, ["Understood: the notes go into the docs folder."]),
        ("slow is done" in last, ["The slow command is done, and the logs of the queue are clean."]),
        ("Which port" in last, ["Staging gets that port."]),
        (
            "RESULT" in last and "/plans/" in last and "approved" not in last,
            ["This is the plan.", ("ExitPlanMode", {})],
        ),
        ("drain the old" in last, ["I would drain the old queue first then."]),
        ("User has approved" in last, ["I have stopped the old workers and begun with the new ones."]),
        ("Implement the following plan" in last, ["I have begun with the plan, with the old queue drained first."]),
        ("RESULT" in last, ["All of that is written."]),
        ("two notes" in last, ["I write both notes.", _write("n1"), _write("n2")]),
        ("ask me" in last, ["One thing is open.", ("AskUserQuestion", {"questions": [QUESTION]})]),
        (
            "take your time" in last,
            ["I start it.", ("Bash", {"command": "sleep 6; echo slow is done", "description": "wait"})],
        ),
        ("one note" in last, ["I write it.", _write("n3")]),
        (
            "plan" in last and bool(plan),
            ["I write the plan.", ("Write", {"file_path": "".join(plan[-1:]), "content": PLAN})],
        ),
    ]
    words = " ".join(re.sub(r"<(\w[\w-]*)>.*?</\1>", "", last, flags=re.DOTALL).split())
    return next((said for holds, said in rules if holds), [f"Noted: {words[-80:]}"])


def _write(name: str) -> Said:
    return "Write", {"file_path": f"{name}.md", "content": f"{name}\n"}


class Case:
    """The program with a home folder of its own."""

    def __init__(self, program: str, folder: Path) -> None:
        self.program, self.home = program, folder / "home" / "me"
        self.work = self.home / "billing"
        (self.work / ".git").mkdir(parents=True)
        (self.home / ".claude").mkdir()
        (self.home / ".claude" / "settings.json").write_text(
            '{"theme": "dark", "showClearContextOnPlanAccept": true}\n'
        )
        project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "allowedTools": []}
        state = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(self.work): project},
        }
        (self.home / ".claude.json").write_text(json.dumps(state))
        self.model = Model(answer)

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of the program."""
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1"}
        given = {"HOME": str(self.home), "USER": "me", "TERM": "xterm-256color", "LANG": "C.UTF-8", **quiet}
        return {"PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": self.model.url, **given}

    def open(self, *words: str, mode: str = "default") -> Terminal:
        """Start the program in a terminal."""
        terminal = Terminal([self.program, "--permission-mode", mode, *words], self.work, self.environment)
        terminal.listen(6.0)
        return terminal

    def run(self, *words: str, given: str = "", entry_point: str = "", folder: str = "") -> None:
        """Run the program without a terminal."""
        place = self.home / folder if folder else self.work
        place.mkdir(parents=True, exist_ok=True)
        environment = {**self.environment, **({"CLAUDE_CODE_ENTRYPOINT": entry_point} if entry_point else {})}
        subprocess.run(
            [self.program, *words],
            cwd=place,
            env=environment,
            input=given,
            text=True,
            check=True,
            timeout=90,
            stdout=subprocess.DEVNULL,
        )


def tools(case: Case) -> None:
    """Two tools side by side, the first refused with a reason; replies, queued words, a yes with a remark."""
    terminal = case.open()
    terminal.say("Please write two notes about the deploy.", "create n1.md?")
    terminal.keys(DOWN, DOWN, TAB, "not here, use the docs folder", ENTER)
    terminal.wait("create n2.md?")
    terminal.keys(ENTER)
    terminal.wait("Understood")
    terminal.say("Now ask me about the port.", "Which port shall")
    terminal.keys(DOWN, ENTER)
    terminal.wait("Staging gets")
    terminal.say("And ask me again about it.", "Which port shall")
    terminal.keys(DOWN, DOWN, "take 7777 instead", ENTER)
    terminal.wait("Staging gets")
    terminal.say("Now take your time with the slow one.", "I start it")
    terminal.keys("also look at the logs of the queue", ENTER)
    terminal.wait("logs of the queue are clean")
    terminal.say("Write one note about the date.", "create n3.md?")
    terminal.keys(TAB, "put the date in front of it", ENTER)
    terminal.wait("All of that")
    terminal.close()


def rewind(case: Case) -> None:
    """A prompt that is taken back with its answer, one that is sent instead, and a compaction."""
    terminal = case.open()
    terminal.say("We move the queue to the new cluster on Monday.", "Noted:")
    terminal.say("This one is wrong and will be taken back.", "Noted:")
    terminal.keys(ESCAPE + ESCAPE)
    terminal.listen(1.5)
    terminal.keys(UP, ENTER)
    terminal.listen(1.0)
    terminal.keys(ENTER)
    terminal.listen(1.0)
    terminal.keys(CLEAR_LINE)
    terminal.say("This one is right and stands instead of it.", "Noted:")
    terminal.say("/compact keep the names of queues", "Compacted")
    terminal.say("After the compaction we go on with the release.", "Noted:")
    terminal.close()


def plan(case: Case) -> None:
    """A plan that is refused with a reason and accepted then; another one, handed over to a fresh context."""
    terminal = case.open(mode="plan")
    terminal.say("Make a plan for the queue.", "Would you like to proceed?")
    terminal.keys(UP, "drain the old queue first", ENTER)
    terminal.wait("I would drain")
    terminal.say("Then make a plan with that.", "Would you like to proceed?")
    terminal.keys(DOWN, DOWN, ENTER)
    terminal.wait("I have stopped")
    terminal.close()
    terminal = case.open(mode="plan")
    terminal.say("One more plan for the other queue.", "Would you like to proceed?")
    terminal.keys(ENTER)
    terminal.wait("I have begun")
    terminal.close()


def forks(case: Case) -> None:
    """A session, one that is forked from it, and a resume of the first in two terminals at once."""
    first = str(uuid.uuid4())
    terminal = case.open("--session-id", first)
    terminal.say("The gateway listens on port 8443 from now on.", "Noted:")
    terminal.close()
    terminal = case.open("--resume", first, "--fork-session")
    terminal.say("In the fork we try port 9443 for the gateway.", "Noted:")
    terminal.close()
    left, right = case.open("--resume", first), case.open("--resume", first)
    for terminal, words in ((left, "left"), (right, "right"), (left, "left again"), (right, "right again")):
        terminal.say(f"In the {words} terminal we look at the gateway.", "Noted:")
    left.close()
    right.close()


def programs(case: Case) -> None:
    """A script with one prompt, an observer's session, and a person who types in an editor."""
    case.run("-p", "Count the lines of all files.")
    case.run("-p", "Observe what happened.", entry_point="sdk-ts", folder=".claude-mem/observer-sessions")
    lines = [
        {"type": "user", "message": {"role": "user", "content": text}}
        for text in ("I type this in an editor.", "And this as well, after the answer.")
    ]
    streams = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    case.run("-p", *streams, given="".join(json.dumps(line) + "\n" for line in lines), entry_point="sdk-ts")


CASES: dict[str, Callable[[Case], None]] = {
    "tools": tools,
    "rewind": rewind,
    "plan": plan,
    "forks": forks,
    "programs": programs,
}


def make(program: str, name: str) -> None:
    """Run a case and keep the sessions that the program wrote, numbered as they were begun."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        case = Case(program, Path(folder))
        CASES[name](case)
        time.sleep(1)
        shutil.rmtree(HERE / name, ignore_errors=True)
        for source in case.home.glob(".claude/projects/*/*.jsonl"):
            target = HERE / name / source.name
            target.parent.mkdir(parents=True, exist_ok=True)
            text = "".join(_shorten(json.loads(line)) for line in source.open())
            target.write_text(text.replace(folder, "").replace(re.sub(r"[^A-Za-z0-9]", "-", folder), ""))


def _shorten(entry: dict[str, Any]) -> str:
    attached = entry.get("attachment")
    if str(entry.get("type")).startswith("api-request"):
        return ""
    if attached and attached["type"] != "queued_command":
        entry = {name: entry.get(name) for name in ("parentUuid", "isSidechain", "type", "uuid", "timestamp")}
        entry["attachment"] = {"type": attached["type"]}
    return json.dumps(_cut(entry), ensure_ascii=False, separators=(",", ":")) + "\n"


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
    if isinstance(value, dict):
        return {name: _cut(held) for name, held in value.items()}
    return list(map(_cut, value)) if isinstance(value, list) else value


if __name__ == "__main__":
    for chosen in sys.argv[2:] or CASES:
        make(str(Path(sys.argv[1]).absolute()), chosen)
