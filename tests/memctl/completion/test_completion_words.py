"""What may stand next on a command line."""

from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Memctl
from figures import counted

from each import each
from memoryd.client.programs.memctl.commands import list_commands
from memoryd.client.protocol import GetStats, Job, JobList, Jobs, List, ListTokens, Memory, Page, Token, TokenList
from memoryd.client.protocol.workspaces import Workspace, WorkspaceList, Workspaces


@pytest.fixture
def words(memctl: Memctl) -> Any:
    """Return what may take the place of the last word."""

    def ask(*typed: str) -> list[str]:
        return [
            line.split("\t")[0]
            for line in memctl("completion", "words", "\n".join(("memctl", *typed))).out.splitlines()
        ]

    return ask


@each("name", sorted(list_commands()))
def test_the_options_of_every_command_are_completed(words: Any, name: str) -> None:
    assert {"--json", "--socket", "--namespace"} <= set(words(*name.split(), "--"))
    assert all(word.startswith("--") for word in words(*name.split(), "-"))


@each(
    ("typed", "expected"),
    [
        (("search", "--reach", "v"), ["visible"]),
        (("search", "--reach=v"), ["--reach=visible"]),
        (("search", "--reach="), ["--reach=visible", "--reach=subtree", "--reach=exact", "--reach=all"]),
        (("search", "x", "--tier", "L"), ["L0", "L1", "L2"]),
        (("--namespace", "search", "sea"), ["search"]),
        (("search", "--limit", ""), []),
        (("search", "--json", "--jso"), []),
        (("search", "--tier", "L0", "--tie"), ["--tier"]),
        (("add", "--", "--js"), []),
        (("add", "x", "y", "--pin"), ["--pinned"]),
        (("up", "--config", ""), [":file"]),
        (("up", "--config="), [":file"]),
        (("export", "--markdown", ""), [":folder"]),
        (("model", "import", ""), [":folder"]),
        (("doctor", "dis"), ["disk"]),
        (("doctor", "disk", "Fil"), ["Files"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("explain", "--where", ""), []),
    ],
)
def test_values_are_completed(words: Any, typed: tuple[str, ...], expected: list[str]) -> None:
    assert words(*typed)[: len(expected) or None] == expected


def test_names_come_from_the_daemon(words: Any, fake: FakeDaemon, folder: Path) -> None:
    memory = Memory(
        id="3f9a" * 8, content="We use\nValkey", namespace="acme/api", type="fact", source="manual", tier="L1",
        importance=0.5, created_at=0.0, updated_at=0.0,
    )  # fmt: skip
    fake.replies |= {
        GetStats: counted(by_namespace={"": 1, "acme/api": 2}),
        List: Page(memories=[memory], total=1),
        Workspaces: WorkspaceList(workspaces=[Workspace(namespace="notes", root="/n", globs=[], created_at=0.0)]),
        ListTokens: TokenList(tokens=[Token(name="alpha", namespace="acme", role="agent", created_at=0.0)]),
        Jobs: JobList(jobs=[Job(name="backup", about="", state="waiting", every_s=1.0, deadline_s=1.0)], at=0.0),
    }
    assert words("search", "--namespace", "") == ["acme/api"]
    assert words("--namespace", "ac") == ["acme/api"]
    assert words("get", "3") == ["3f9a3f9a"]
    assert words("delete", "3f9a3f9a", "3") == ["3f9a3f9a"]
    assert words("workspace", "remove", "") == ["notes"]
    assert words("token", "revoke", "") == ["alpha"]
    assert words("jobs", "run", "b") == ["backup"]


def test_without_a_daemon_nothing_is_said_and_none_is_started(memctl: Memctl, folder: Path) -> None:
    done = memctl("completion", "words", "memctl\nget\n3")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert not (folder / "s").exists()
