"""backfill: past sessions, as the programs themselves wrote them (tests/data/backfill), come in whole, once."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import Memctl, Terminal

from memoryd.client.programs.backfill.placing import find_place, name_place
from memoryd.client.programs.hooks import spool
from memoryd.client.programs.sessions.agents import AGENTS
from memoryd.client.programs.sessions.building import Session
from memoryd.client.protocol.backfill import Backfill, PastTurn
from past_sessions import make_home
from waiting import wait_until
from workbench import Daemon

SAMPLES = Path(__file__).parent.parent / "data" / "backfill"
FIRST = "Write down in notes.md that billing migrations need --lock-timeout 5s."
DONE = "Done: notes.md says that the billing migrations need a lock timeout of five seconds."
SECOND = "Which port does the staging database listen on?"
TURNS = dict.fromkeys(AGENTS, 4) | {"cline": 2}
ANSWER = "The staging database listens on port 5433, as the compose file says."


@pytest.fixture
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a user who has no sessions yet."""
    made = folder / "home"
    made.mkdir()
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("USER", "me")
    for agent in AGENTS.values():
        monkeypatch.delenv(agent.home.partition("/")[0] or "none", raising=False)
    return made


def put_sample(home: Path, agent: str) -> None:
    """Put what a program wrote into a home folder, as if it had been in a terminal, where a person types."""
    shutil.copytree(SAMPLES / agent, home, dirs_exist_ok=True)
    typed = {'"source":"exec"': '"source":"cli"', '"question"': '"edit"', '"interactive": false': '"interactive": true'}
    for pattern in (".codex/sessions/**/*.jsonl", ".local/share/opencode/*.sql", ".cline/data/sessions/*/*.json"):
        for path in home.glob(pattern):
            text = path.read_text()
            for run, in_terminal in typed.items():
                text = text.replace(run, in_terminal)
            path.write_text(text)
    for dump in home.glob(".local/share/opencode/*.sql"):
        connection = sqlite3.connect(dump.with_suffix(".db"))
        connection.executescript(dump.read_text())
        connection.close()


def read_sample(home: Path, agent: str) -> Session:
    put_sample(home, agent)
    (path,) = AGENTS[agent].list_files()
    (session,) = AGENTS[agent].read(path)
    return session


def contents(daemon: "Daemon") -> list[str]:
    with daemon.client() as client:
        return sorted(memory.content for memory in client.list(limit=1000, reach="all"))


# The agents ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", AGENTS)
def test_of_a_session_that_the_program_wrote_prompts_and_last_answers_are_read(agent: str, home: Path) -> None:
    session = read_sample(home, agent)
    expected = [("user", FIRST), ("assistant", DONE), ("user", SECOND), ("assistant", ANSWER)]
    assert [(turn.role, turn.text.strip('"')) for turn in session.utterances] == expected[: TURNS[agent]]
    assert {turn.folder for turn in session.utterances} == {"/home/me/billing"}
    assert [turn.files for turn in session.utterances] == [[], ["/home/me/billing/notes.md"], [], []][: TURNS[agent]]
    times = [turn.at for turn in session.utterances]
    assert times == sorted(times)
    assert times[0] > 1_790_000_000
    assert len({turn.id for turn in session.utterances}) == TURNS[agent]
    assert session.left_out["said between tools"] == 1
    assert session.left_out["output of tools"] >= 1


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent != "opencode"])
@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[1]\nnull\n\xff\xfe\n", b'{"type": "user"}\n{"payload": 3}\n', b"[" * 100_000]
)
def test_a_damaged_file_of_a_session_gives_no_turns_and_no_error(agent: str, damage: bytes, home: Path) -> None:
    put_sample(home, agent)
    (path,) = AGENTS[agent].list_files()
    path.write_bytes(damage)
    assert [turn for session in AGENTS[agent].read(path) for turn in session.utterances] == []


# What they leave out -------------------------------------------------------------------------------------------------


def put_case(home: Path, case: str) -> None:
    """Put sessions of Claude Code that were made by keys in a terminal into a home folder."""
    shutil.copytree(SAMPLES / "cases" / "claude-code" / case, home / ".claude" / "projects" / case)


def run_both(memctl: Memctl, *words: str) -> dict[str, Any]:
    """Return the report of a run; a dry run before it says the same."""
    shown = memctl("backfill", "--dry-run", "--json", *words).json
    done = memctl("backfill", "--json", *words).json
    compared = ("taken", "known", "left_out", "automated", "unknown", "problems")
    assert {name: done[name] for name in compared} == {name: shown[name] for name in compared}
    return done


def test_what_a_fork_and_two_terminals_repeat_comes_in_once(home: Path, daemon: "Daemon", memctl: Memctl) -> None:
    put_case(home, "forks")
    done = run_both(memctl)
    assert (done["taken"], done["left_out"]) == (12, {"copies of what was said in another session": 2})
    with daemon.client("billing") as client:
        first = next(memory for memory in client.list(limit=20) if "8443" in memory.content)
        assert first.metadata["session"].startswith("30cbb351")  # the one that it was said in, not the fork
    assert memctl("backfill", "--json").json["known"] == 12


def test_what_was_taken_back_and_what_programs_ran_stays_out_and_is_named(
    home: Path, daemon: "Daemon", memctl: Memctl
) -> None:
    put_case(home, "rewind")
    put_case(home, "programs")
    done = run_both(memctl)
    assert done["taken"] == 10
    assert done["left_out"]["taken back by the person"] == 2
    assert sorted(one["begins"] for one in done["automated"]) == [
        "Count the lines of all files.",
        "Observe what happened.",
    ]
    assert "with one prompt): Count the lines of all files." in memctl("backfill", "--dry-run").out
    assert not any("wrong" in content for content in contents(daemon))
    assert run_both(memctl, "--automated")["taken"] == 4


def test_a_fork_with_ids_of_its_own_repeats_what_the_session_that_it_names_begins_with(
    home: Path, daemon: "Daemon", memctl: Memctl
) -> None:
    put_case(home, "tools")
    (path,) = (home / ".claude" / "projects" / "tools").iterdir()
    said = path.read_text().replace('"uuid":"', '"uuid":"f').replace('"parentUuid":"', '"parentUuid":"f')
    line = {"type": "user", "message": {"content": "In the fork something else is asked."}, "cwd": "/home/me/billing"}
    line |= {"forkedFrom": {"sessionId": path.stem}, "timestamp": "2026-11-29T20:00:00Z", "uuid": "f1"}
    (path.parent / "fork.jsonl").write_text(f"{said}{json.dumps(line)}\n")
    done = run_both(memctl)
    assert done["left_out"]["copies of what was said in another session"] == 18
    assert sorted(content for content in contents(daemon) if "fork" in content) == [
        "In the fork something else is asked."
    ]


def test_one_file_never_costs_another_and_what_is_not_known_is_named(
    home: Path, daemon: "Daemon", memctl: Memctl
) -> None:
    put_case(home, "rewind")
    place = home / ".claude" / "projects" / "rewind"
    (path,) = place.iterdir()
    lines = path.read_text().splitlines(keepends=True)
    os.mkfifo(place / "a.jsonl")
    (place / "b.jsonl").symlink_to(path)
    (place / "c.jsonl").write_text('{"type": "user", "message": 3}\n{"type": "user"')
    (place / "d.jsonl").write_text('{"type": "hologram", "version": "9.1"}\n')
    path.write_text("".join(lines[:-1]) + '{"type": "unfin')
    done = run_both(memctl)
    assert (done["taken"], done["problems"]) == (6, [])
    assert done["left_out"]["unreadable lines"] == 2
    assert done["unknown"] == {"Claude Code 9.1: entries of type hologram": 1}
    path.write_text("".join(lines))
    assert memctl("backfill", "--json").json["taken"] == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_may_not_be_read_is_named(home: Path, daemon: "Daemon", memctl: Memctl) -> None:
    put_case(home, "rewind")
    put_case(home, "forks")
    closed = home / ".claude" / "projects" / "forks"
    closed.chmod(0)
    try:
        done = run_both(memctl)
    finally:
        closed.chmod(0o700)
    assert (done["taken"], done["problems"]) == (6, [f"{closed} cannot be read"])


def test_a_deleted_and_an_erased_turn_stay_out(home: Path, daemon: "Daemon", memctl: Memctl) -> None:
    put_case(home, "rewind")
    assert run_both(memctl)["taken"] == 6
    with daemon.client("billing") as client:
        (gone,) = (memory for memory in client.list(limit=20) if memory.content.startswith("This one is right"))
        client.delete(gone.id)
    again = run_both(memctl)
    assert (again["taken"], again["left_out"]["it was deleted"]) == (0, 1)
    assert memctl("erase", "--matching", "release", "--yes").code == 0
    again = run_both(memctl)
    assert again["taken"] == 0
    assert not any("release" in content for content in contents(daemon))


# Places --------------------------------------------------------------------------------------------------------------


def test_a_place_is_the_project_in_which_something_was_said_also_when_it_is_gone(home: Path) -> None:
    """Each row: the folder, where its session began, and the top folder of the project."""
    api = home / "work" / "api"
    (api / ".git").mkdir(parents=True)
    rows = [
        (str(api / "src"), str(api), str(api)),
        (f"{api}/.worktrees/fix/src", f"{api}/.worktrees/fix", str(api)),
        ("/home/ada/shop/src", "/home/ada/shop", "/home/ada/shop"),
        ("/home/ada/other", "/home/ada/shop", "/home/ada/other"),
        ("D:\\code\\shop", "D:\\code\\shop", "D:\\code\\shop"),
        ("d:/code/shop/src", "D:\\code\\shop", "D:\\code\\shop"),
        ("C:\\Users\\ada", "D:\\code\\shop", "C:\\Users\\ada"),
        ("\\\\wsl$\\Ubuntu" + str(api).replace("/", "\\"), str(api), str(api)),
        ("work/api", str(api), ""),
        ("/home/ada/kept/fix/src", "/home/ada/kept", "/home/ada/kept"),
    ]
    places = []
    for folder, began, _ in rows:
        session = Session("claude-code", "s", began)
        session.worktrees["/elsewhere/fix"] = str(api)
        places.append((folder, began, find_place(folder, session)))
        assert find_place("/elsewhere/fix/src", session) == str(api)
    assert places == rows
    assert [name_place(root, False) for root in ("D:\\work\\shop", "C:\\Users\\ada", "E:\\")] == ["shop", "", ""]


def test_sessions_of_temporary_folders_are_left_out_unless_they_are_wanted(
    home: Path, daemon: "Daemon", memctl: Memctl
) -> None:
    put_case(home, "rewind")
    for path in home.glob(".claude/projects/*/*.jsonl"):
        path.write_text(path.read_text().replace("/home/me/billing", "/tmp/billing"))
    done = run_both(memctl)
    assert (done["taken"], done["left_out"]["turns in temporary folders (--temporary takes them in)"]) == (0, 6)
    assert run_both(memctl, "--temporary")["taken"] == 6


# The command ---------------------------------------------------------------------------------------------------------


def test_without_sessions_it_says_so(home: Path, daemon: "Daemon", memctl: Memctl) -> None:
    assert memctl("backfill").out == "No past sessions were found.\n"


def test_a_dry_run_shows_what_there_is_and_changes_nothing(home: Path, daemon: "Daemon", memctl: Memctl) -> None:
    for agent in AGENTS:
        put_sample(home, agent)
    shown = memctl("backfill", "--dry-run", "--json").json
    assert [(row["agent"], row["namespace"], row["sessions"], row["turns"]) for row in shown["projects"]] == [
        (agent, "billing", 1, TURNS[agent]) for agent in sorted(AGENTS)
    ]
    assert shown["taken"] + shown["left_out"]["duplicate"] == sum(TURNS.values())
    assert shown["left_out"]["output of tools"] >= len(AGENTS)
    assert contents(daemon) == []
    assert memctl("project", "list", "--json").json == []
    assert "Would take in" in memctl("backfill", "--dry-run").out
    done = memctl("backfill", "--json").json
    assert (done["taken"], done["left_out"]) == (shown["taken"], shown["left_out"])


def test_it_takes_in_what_was_said_once_and_an_undo_takes_it_back(home: Path, daemon: "Daemon", memctl: Memctl) -> None:
    put_sample(home, "claude-code")
    done = memctl("backfill", "--json").json
    assert (done["taken"], done["known"]) == (4, 0)
    with daemon.client("billing") as client:
        found = client.search("staging port").hits[0]
        assert found.content in (SECOND, ANSWER)
        turns = {memory.content: memory for memory in client.list(limit=10)}
        assert turns[ANSWER].metadata["answers"] == turns[SECOND].id
        assert turns[DONE].metadata["files"] == ["/home/me/billing/notes.md"]
        assert turns[FIRST].metadata["speaker"] == "me"
        assert {memory.source for memory in turns.values()} == {"backfill"}
        assert turns[FIRST].created_at < turns[ANSWER].created_at < 1_800_000_000
    again = memctl("backfill", "--json").json
    assert (again["taken"], again["known"], again["operation"]) == (0, 4, None)
    assert memctl("undo", done["operation"]).code == 0
    assert contents(daemon) == []
    assert memctl("verify").code == 0
    assert memctl("backfill", "--json").json["taken"] == 4


def test_an_answer_that_was_given_in_another_folder_of_the_project_is_paired(
    home: Path, daemon: "Daemon", memctl: Memctl
) -> None:
    put_sample(home, "claude-code")
    (path,) = AGENTS["claude-code"].list_files()
    lines = path.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if ANSWER in line)
    lines[at] = lines[at].replace('"cwd":"/home/me/billing"', '"cwd":"/home/me/billing/deploy"')
    assert "deploy" in lines[at]
    path.write_text("".join(lines))
    root = home / "me" / "billing"
    (root / ".git").mkdir(parents=True)
    path.write_text(path.read_text().replace("/home/me/billing", str(root)))
    assert memctl("backfill", "--json").json["taken"] == 4
    with daemon.client("billing") as client:
        turns = {memory.content: memory for memory in client.list(limit=10)}
    assert turns[ANSWER].metadata["answers"] == turns[SECOND].id


def test_what_was_said_before_a_date_and_in_other_projects_is_left_out(
    home: Path, daemon: "Daemon", memctl: Memctl
) -> None:
    make_home(home, 4, 16, projects=2)
    shown = memctl("backfill", "--project", str(home / "work" / "project1"), "--dry-run", "--json").json
    assert {row["namespace"] for row in shown["projects"]} == {"project1"}
    assert shown["taken"] == 8
    assert memctl("backfill", "--agent", "codex", "--json").json["taken"] == 4
    later = memctl("backfill", "--since", "2025-10-10", "--json").json
    assert (later["taken"], later["left_out"]["turns before --since"]) == (8, 8)


def test_a_session_without_a_known_folder_needs_a_namespace(home: Path, daemon: "Daemon", memctl: Memctl) -> None:
    put_sample(home, "gemini")
    for name in (".gemini/tmp/billing/.project_root", ".gemini/projects.json"):
        (home / name).unlink()
    assert memctl("backfill", "--json").json["taken"] == 0
    assert memctl("backfill", "--namespace", "old", "--json").json["taken"] == 4
    with daemon.client("old") as client:
        assert client.search("staging port").hits


def test_credentials_are_taken_out_and_erase_takes_all_for_good(home: Path, daemon: "Daemon", memctl: Memctl) -> None:
    put_sample(home, "claude-code")
    (path,) = AGENTS["claude-code"].list_files()
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    path.write_text(path.read_text().replace("port 5433,", f"port 5433 with {secret},"))
    done = memctl("backfill")
    assert "removed before storing" in done.err
    assert not any(secret in content for content in contents(daemon))
    assert memctl("erase", "--source", "backfill", "--yes").code == 0
    assert contents(daemon) == []


@pytest.mark.parametrize("given", [["--matching", "vault"], ["--session", "work"]])
def test_a_session_of_which_waiting_messages_were_erased_is_left_out(
    given: list[str], daemon: "Daemon", memctl: Memctl
) -> None:
    said = [{"role": "user", "content": "We decided that the vault is behind the painting.", "id": "ab" * 16}]
    assert spool.append({"method": "observe", "turns": said, "session": "work-9"})
    assert "Erased 1 message" in memctl("erase", *given, "--yes").out
    past = [PastTurn(role="user", content=said[0]["content"], id="ab" * 16, created_at=1.0)]
    with daemon.client() as client:
        for session, taken in (("work-9", 0), ("work-8", 1)):
            assert client.call(Backfill(turns=past, session=session, namespace="")).taken == taken


def test_nothing_is_noted_of_a_project_into_which_nothing_comes(
    home: Path, folder: Path, daemon: "Daemon", memctl: Memctl
) -> None:
    """What was said there was erased: the table of projects does not have it again."""
    put_sample(home, "claude-code")
    assert memctl("backfill", "--json").json["taken"] == 4
    for table in folder.rglob("projects.json"):
        table.unlink()
    assert memctl("erase", "--source", "backfill", "--yes").code == 0
    again = memctl("backfill", "--json").json
    assert (again["taken"], again["left_out"]["something of its session was erased"]) == (0, 4)
    assert memctl("project", "list", "--json").json == []
    assert "billing" not in [one["name"] for one in memctl("namespaces", "--json").json]


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_in_the_same_operation(
    home: Path, module_process: Any, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_home(home, 12, 1200)
    monkeypatch.setenv("MEMORYD_SOCKET", str(module_process.socket))
    with module_process.client() as client:
        for number in (1, 2, 3):
            running = subprocess.Popen(
                [sys.executable, "-m", "memoryd.client.programs.memctl", "backfill"], env={**os.environ}
            )
            try:
                wait_until(lambda number=number: client.stats().memories > 200 * number)
                assert running.poll() is None
            finally:
                running.kill()
                running.wait()
        done = memctl("backfill", "--json").json
        assert done["known"] > 600
        assert done["taken"] + done["known"] + done["left_out"].get("duplicate", 0) == made.turns
        (operation,) = (one for one in client.operations(limit=50) if one.kind == "backfill")
        assert operation.id == done["operation"]
        assert operation.memories == client.stats().memories == made.turns
        assert memctl("undo", operation.id).code == 0
        assert client.stats().memories == 0


# The offer -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "typed", "taken"),
    [
        ((), None, 0),
        ((), "\n", 0),
        ((), "y\n", 4),
        (("--backfill",), None, 4),
        (("--no-backfill",), "y\n", 0),
        (("--backfill", "--dry-run"), "y\n", 0),
    ],
)
def test_hooks_install_offers_to_take_in_the_past_sessions_of_its_agent(
    words: tuple[str, ...],
    typed: str | None,
    taken: int,
    home: Path,
    daemon: "Daemon",
    memctl: Memctl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_sample(home, "codex")
    put_sample(home, "gemini")
    monkeypatch.setattr(sys, "stdin", typed and Terminal(typed))
    assert memctl("hooks", "install", "codex", *words).code == 0
    assert len(contents(daemon)) == taken
