"""hooks install offers to index the notes that an agent keeps itself; they are found and told, and never changed."""

import json
import re
import sys
from pathlib import Path

import pytest
from fake_daemon import Memctl

from memoryd.client.programs.hooks.hosts import HOSTS
from memoryd.client.protocol import GetUnasked
from waiting import wait_until
from workbench import Daemon

RULE = "---\nname: deploys\nmetadata:\n  type: feedback\n---\nNobody deploys the shop on a Friday.\n"
WISH = "---\nname: tea\ntype: user\n---\nAda wants short answers without a summary.\n"
FACT = "---\nname: cache\ntype: project\n---\nThe sessions of the shop are cached in Valkey.\n"


@pytest.fixture
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = folder / "home"
    made.mkdir()
    monkeypatch.setenv("HOME", str(made))
    for host in HOSTS.values():
        monkeypatch.delenv(host.home, raising=False)
    return made


def keep_notes(home: Path, project: Path, **notes: str) -> Path:
    """Lay notes of Claude Code where it keeps those of a project, beside a session there."""
    (project / ".git").mkdir(parents=True)
    kept = home / ".claude/projects" / re.sub(r"[^a-zA-Z0-9]", "-", str(project))
    (kept / "memory").mkdir(parents=True)
    (kept / "s.jsonl").write_text(
        f'{{"type":"summary"}}\nbroken\n{json.dumps({"type": "user", "cwd": str(project / "src")})}\n'
        f"{json.dumps({'type': 'user', 'cwd': str(project)})}\n"
    )
    for name, text in notes.items():
        (kept / "memory" / f"{name}.md").write_text(text)
    return kept / "memory"


@pytest.fixture
def shop(home: Path, folder: Path) -> Path:
    index = "- [Deploys](deploys.md) - not on Fridays\n"
    return keep_notes(home, folder / "work/shop", MEMORY=index, deploys=RULE, tea=WISH, cache=FACT)


def state(root: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in root.rglob("*") if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def told(daemon: "Daemon", agent: str, namespace: str = "shop", prompt: str = "") -> str:
    with daemon.client() as client:
        return client.call(GetUnasked(agent=agent, namespace=namespace, prompt=prompt)).text


def test_notes_of_claude_code_are_found_in_their_project_and_told_to_others(
    daemon: "Daemon", memctl: Memctl, shop: Path
) -> None:
    before = state(shop)
    done = memctl("hooks", "install", "claude-code", "--notes", "--no-backfill")
    assert "1 folder of notes of Claude Code added; they are watched, never changed." in done.err
    [workspace] = memctl("workspace", "status", "--json").json
    assert (workspace["namespace"], workspace["files"]) == ("shop/claude-code", 4)
    hit = memctl("search", "where are sessions cached", "--namespace", "shop", "--json").json[0]
    assert (hit["namespace"], hit["type"], hit["source"]) == ("shop", "note", "claude-code")
    for agent in ("Codex", "Cursor", ""):
        text = told(daemon, agent)
        assert "Nobody deploys the shop on a Friday" in text
        assert "Ada wants short answers" in text
        assert "Valkey" not in text
    assert told(daemon, "Claude Code") == ""
    assert told(daemon, "Codex", "other") == ""
    asked = "Where are the sessions of the shop cached?"
    assert "Valkey" in told(daemon, "Codex", prompt=asked)
    assert told(daemon, "Claude Code", prompt=asked) == ""
    (shop / "deploys.md").write_text(RULE.replace("Friday", "Monday"))
    wait_until(lambda: "on a Monday" in told(daemon, "Codex"))
    (shop / "deploys.md").write_text(RULE)
    assert {path: one[0] for path, one in state(shop).items()} == {path: one[0] for path, one in before.items()}
    with daemon.client() as client:
        assert {memory.tier for memory in client.list(limit=100)} == {"documents"}, "no memory is made of them"


def test_they_are_never_written(daemon: "Daemon", memctl: Memctl, shop: Path) -> None:
    memctl("hooks", "install", "claude-code", "--notes")
    before = state(shop)
    hit = memctl("search", "nobody deploys on friday", "--json").json[0]
    for words in (
        ("remember", "A note", "--workspace", "shop/claude-code"),
        ("forget", hit["id"]),
        ("dream", "shop/claude-code"),
        ("dream", "shop/claude-code", "--allow"),
    ):
        done = memctl(*words)
        assert done.code == 1
        assert "memoryd only reads them" in done.err
    assert memctl("dream").code == 0
    assert state(shop) == before


def test_codex_has_its_notes_for_all_projects_and_neither_it_nor_any_project_is_told_them(
    daemon: "Daemon", memctl: Memctl, home: Path
) -> None:
    root = home / ".codex/memories"
    (root / "rollout_summaries").mkdir(parents=True)
    (root / "MEMORY.md").write_text("# Task Group: shop\n\nThe tests of the shop need Postgres 16.\n")
    (root / "raw_memories.md").write_text("The tests of the shop need a raw potato.\n")
    (root / "rollout_summaries/a.md").write_text(f"---\ntype: user\n---\n{WISH.splitlines()[-1]}\n")
    memctl("hooks", "install", "codex", "--notes")
    found = memctl("search", "what do the tests of the shop need", "--namespace", "shop", "--json").json
    assert ["potato" in hit["content"] for hit in found] == [False] * len(found)
    assert (found[0]["namespace"], found[0]["source"]) == ("", "codex")
    assert "Ada wants short answers" in told(daemon, "Claude Code", "")
    assert told(daemon, "Codex", "") == ""
    assert told(daemon, "Claude Code", "shop") == ""  # of what is of no project only the person's own words come up


@pytest.mark.parametrize(
    ("words", "typed", "added"),
    [((), None, 0), ((), "\n", 0), ((), "y\n", 1), (("--no-notes",), "y\n", 0), (("--notes", "--dry-run"), "y\n", 0)],
)
def test_nobody_is_asked_without_a_terminal(
    words: tuple[str, ...],
    typed: str | None,
    added: int,
    daemon: "Daemon",
    memctl: Memctl,
    shop: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return typed is not None

        def readline(self) -> str:
            return typed or ""

    monkeypatch.setattr(sys, "stdin", Terminal())
    done = memctl("hooks", "install", "claude-code", "--no-backfill", *words)
    assert len(memctl("workspace", "status", "--json").json) == added
    assert ("its own notes: memctl hooks install claude-code --notes" in done.err) == (not words and not added)
    if added:
        again = memctl("hooks", "install", "claude-code", "--no-backfill")
        assert "notes" not in again.err, "they are a workspace already"


@pytest.mark.slow
def test_a_project_has_its_own_notes_and_an_unknown_one_is_named(
    daemon: "Daemon", memctl: Memctl, home: Path, folder: Path, shop: Path
) -> None:
    keep_notes(home, folder / "work/api", MEMORY="The api is old.\n")
    lost = home / ".claude/projects/-nowhere/memory"
    lost.mkdir(parents=True)
    (lost / "MEMORY.md").write_text("Whose is this?\n")
    (home / ".claude/projects/-empty/memory").mkdir(parents=True)
    memctl("hooks", "install", "claude-code", "--notes", "--project", str(folder / "work/api"))
    assert [one["namespace"] for one in memctl("workspace", "status", "--json").json] == ["api/claude-code"]
    done = memctl("hooks", "install", "claude-code", "--notes")
    assert f"{lost} was not added: its project is not known yet. Run this again after" in done.err
    names = [one["namespace"] for one in memctl("workspace", "status", "--json").json]
    assert names == ["api/claude-code", "shop/claude-code"]
    memctl("workspace", "remove", "shop/claude-code")
    assert "as shop/claude-code;" in memctl("workspace", "add", str(shop)).out
