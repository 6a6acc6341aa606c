"""The project of a folder, and the namespace named after it."""

import subprocess
from pathlib import Path

import pytest

from each import each
from memoryd.client.projects.project import (
    current_namespace,
    namespace_of_environment,
    project_namespace,
    project_root,
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(tmp_path / "data"))
    return folder


def made(*parts: Path | str) -> Path:
    folder = Path(*parts)
    folder.mkdir(parents=True)
    return folder


def git(*words: str | Path) -> None:
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True, capture_output=True)


def test_a_folder_inside_a_checkout_belongs_to_the_checkout(home: Path) -> None:
    inside = made(home, "code", "api", "src", "deep")
    git("init", home / "code" / "api")
    assert project_root(inside) == str(home / "code" / "api")
    assert project_namespace(inside) == project_namespace(home / "code" / "api") == "api"


def test_a_linked_worktree_shares_the_namespace_of_its_main_checkout(home: Path) -> None:
    main = made(home, "api")
    git("init", main)
    git("-C", main, "commit", "--allow-empty", "-m", "first")
    git("-C", main, "worktree", "add", home / "api-fix")
    assert project_root(home / "api-fix") == str(main)
    assert project_namespace(home / "api-fix") == "api"


def test_a_worktree_that_was_met_belongs_to_its_checkout_when_it_is_gone(home: Path) -> None:
    main, other = made(home, "api"), made(home, "other")
    for checkout in (main, other):
        git("init", checkout)
        git("-C", checkout, "commit", "--allow-empty", "-m", "first")
    git("-C", main, "worktree", "add", home / "fix")
    git("-C", main, "worktree", "add", home / "unmet")
    assert [project_namespace(folder) for folder in (main, home / "fix" / "src")] == ["api", "api"]
    for name in ("fix", "unmet"):
        git("-C", main, "worktree", "remove", "--force", home / name)
    assert [project_namespace(home / name, note=False) for name in ("fix/src", "fix", "unmet")] == [
        "api",
        "api",
        "unmet",
    ]
    git("init", home / "fix")  # another project has its place now
    assert project_root(home / "fix") == str(home / "fix")


def test_a_worktree_whose_main_checkout_is_gone_is_its_own_project(home: Path) -> None:
    left = made(home, "left")
    (left / ".git").write_text(f"gitdir: {home}/gone/.git/worktrees/left\n")
    assert project_root(left) == str(left)


def test_the_home_folder_and_the_root_are_no_project_also_when_home_is_in_git(home: Path) -> None:
    assert [project_namespace(home), project_namespace("/"), project_namespace("~")] == ["", "", ""]
    made(home, ".git")
    assert project_namespace(made(home, "plain")) == "plain"


def test_a_client_is_in_a_project_in_a_checkout_and_where_an_agent_has_worked(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seen_from(folder: Path) -> str:
        monkeypatch.chdir(folder)
        return current_namespace()

    inside, notes, gone = made(home, "api", "src"), made(home, "notes"), made(home, "gone")
    git("init", home / "api")
    assert [seen_from(folder) for folder in (inside, home / "api", notes, home)] == ["api", "api", "", ""]
    assert project_namespace(notes) == "notes"  # as a hook asks
    assert [seen_from(folder) for folder in (notes, made(notes, "old"))] == ["notes", ""]
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert current_namespace() == ""


def test_a_folder_is_no_project_when_the_table_of_projects_cannot_be_read(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, "data")
    (tmp_path / "data" / "projects.json").write_text("{")
    monkeypatch.chdir(made(home, "notes"))
    assert current_namespace() == ""


@each(
    ("variables", "namespace"),
    [
        ({}, None),
        ({"MEMORYD_NAMESPACE": ""}, None),
        ({"MEMORYD_NAMESPACE": "/"}, ""),
        ({"MEMORYD_NAMESPACE": "/acme/api/"}, "acme/api"),
        ({"MEMORYD_TOKEN": "t"}, ""),
        ({"MEMORYD_TOKEN": "t", "MEMORYD_NAMESPACE": "acme"}, "acme"),
    ],
)
def test_the_environment_names_a_namespace_or_none(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], namespace: str | None
) -> None:
    for name in ("MEMORYD_NAMESPACE", "MEMORYD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert namespace_of_environment() == namespace
