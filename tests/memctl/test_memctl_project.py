"""memctl project: who has which namespace, and another name with the memories that belong to it."""

from pathlib import Path
from typing import Any

import pytest
from fake_daemon import Memctl

from memoryd.client import Client
from memoryd.client.memctl import project
from memoryd.client.project import project_namespace
from memoryd.client.projects import FILE
from memoryd.client.protocol import List


@pytest.fixture(autouse=True)
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(folder))
    return folder


def met(*paths: Path) -> list[str]:
    """Have a hook or an MCP server meet folders."""
    for path in paths:
        path.mkdir(parents=True)
    return list(map(project_namespace, paths))


def held(client: Client, namespace: str) -> list[str]:
    return sorted(memory.content for memory in client.call(List(namespace=namespace, reach="exact", limit=100)))


def namespaces(memctl: Memctl) -> list[str]:
    return [row["namespace"] for row in memctl("project", "list", "--json").json]


def test_projects_are_listed_without_a_daemon(memctl: Memctl, home: Path) -> None:
    assert memctl("project").out.startswith("No projects yet")
    assert memctl("project", "--json").json == []
    met(home / "a" / "api", home / "b" / "api")
    rows = memctl("project", "list", "--json").json
    assert rows[1] == {"namespace": "api-2", "remote": "", "root": "", "folders": [str(home / "b" / "api")]}
    lines = memctl("project").out.splitlines()
    assert lines[0].split() == ["NAMESPACE", "CLONED", "FROM", "FOLDERS"]
    assert lines[2].split() == ["api-2", "~/b/api"]


def test_a_project_takes_its_memories_along_and_they_can_be_moved_back(
    client: Client, memctl: Memctl, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "BATCH", 2)
    met(home / "a" / "api", home / "b" / "api")
    texts = [f"note {number}" for number in range(5)]
    with Client("api-2", socket=client.socket_path, autostart=False) as inside:
        inside.add_many([{"content": text} for text in texts], dedup=False)
    client.add("of all projects")
    done = memctl("project", "rename", "api-2", "acme/payments", "--json").json
    assert (done["namespace"], done["former"], done["moved"], done["left"]) == ("acme/payments", "api-2", 5, 0)
    assert (held(client, "api-2"), held(client, "acme/payments")) == ([], texts)
    assert project_namespace(home / "b" / "api") == "acme/payments"
    assert len(done["operations"]) == 3
    for operation in reversed(done["operations"]):
        memctl("undo", str(operation))
    assert held(client, "api-2") == texts


def test_what_stays_behind_is_counted(client: Client, memctl: Memctl, home: Path) -> None:
    met(home / "api")
    with Client("api", socket=client.socket_path, autostart=False) as inside:
        inside.add("We pay by invoice.")
        inside.observe([{"role": "user", "content": "From May on we pay by invoice."}], session="s")
    out = memctl("project", "rename", "api", "payments").out.splitlines()
    assert out[0] == "api is called payments from now on; 1 memory moved there."
    assert out[1].startswith("`memctl undo ")
    assert out[2] == "1 stay in api: turns of the latest conversations, notes of a workspace."


def test_a_path_names_the_project_that_it_is_in(memctl: Memctl, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    met(home / "a" / "api", home / "b" / "api")
    (home / "b" / "api" / "src").mkdir()
    monkeypatch.chdir(home / "b" / "api" / "src")
    assert memctl("project", "rename", ".", "payments", "--name-only").code == 0
    assert memctl("project", "rename", "~/a/api", "ledger", "--name-only").code == 0
    assert namespaces(memctl) == ["ledger", "payments"]


def test_a_name_that_is_taken_is_shared_only_when_asked_for(client: Client, memctl: Memctl, home: Path) -> None:
    met(home / "a" / "notes", home / "b" / "notes")
    with Client("notes-2", socket=client.socket_path, autostart=False) as inside:
        inside.add("Herons stand still.")
    refused = memctl("project", "rename", "notes-2", "notes")
    assert (refused.code, refused.err) == (
        1,
        f"memctl: notes is the namespace of {home}/a/notes; --join lets both share it.\n",
    )
    assert namespaces(memctl) == ["notes", "notes-2"]
    assert held(client, "notes") == []
    assert memctl("project", "rename", "notes-2", "notes", "--join").code == 0
    assert namespaces(memctl) == ["notes", "notes"]
    assert held(client, "notes") == ["Herons stand still."]
    apart = memctl("project", "rename", str(home / "b" / "notes"), "birds", "--json").json
    assert apart["moved"] == 0, "nobody knows whose a shared memory is"
    assert namespaces(memctl) == ["notes", "birds"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nothing", "new"), 1, "There is no project 'nothing'; `memctl project list` shows them."),
        (("/nowhere", "new"), 1, "There is no project '/nowhere'"),
        (("api", "a//b"), 1, "'a//b' cannot be a namespace"),
        (("api", "/"), 1, "'/' cannot be a namespace"),
        (("api", "a\nb"), 1, "cannot be a namespace"),
        (("api", "x" * 600), 1, "x' cannot be a namespace"),
        (("api", "api"), 1, "The project is called api already."),
        (("api",), 2, "NEW"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    words: tuple[str, ...], code: int, said: str, daemon: Any, memctl: Memctl, home: Path
) -> None:
    met(home / "api")
    refused = memctl("project", "rename", *words)
    assert (refused.code, refused.out) == (code, "")
    assert said in refused.err
    assert namespaces(memctl) == ["api"]


def test_without_a_daemon_only_the_name_can_change(memctl: Memctl, home: Path) -> None:
    met(home / "api")
    assert memctl("project", "rename", "api", "payments", "--no-autostart").code == 3
    assert namespaces(memctl) == ["api"]
    assert memctl("project", "rename", "api", "payments", "--name-only").code == 0
    assert namespaces(memctl) == ["payments"]


def test_a_damaged_table_is_said_in_a_sentence(memctl: Memctl, folder: Path) -> None:
    (folder / "data").mkdir(mode=0o700)
    (folder / "data" / FILE).write_text("{")
    for words in (("list",), ("rename", "a", "b")):
        failed = memctl("project", *words)
        assert (failed.code, failed.out) == (1, "")
        assert failed.err.startswith(f"memctl: The table of projects {folder}/data/{FILE} is damaged (")


def test_a_workspace_of_a_whole_project_has_its_namespace(daemon: Any, memctl: Memctl, home: Path) -> None:
    one, two = home / "a" / "api", home / "b" / "api"
    met(one, two)
    (two / "docs").mkdir()
    assert memctl("workspace", "add", str(two / "docs"), "--json").json["workspace"]["namespace"] == "docs"
    memctl("workspace", "remove", "docs")
    assert memctl("workspace", "add", str(two), "--json").json["workspace"]["namespace"] == "api-2"
    assert memctl("workspace", "add", str(one), "--namespace", "x", "--json").json["workspace"]["namespace"] == "x"
