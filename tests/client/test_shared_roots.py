"""Which checkouts lie in a shared root: those of its repositories, by their remotes, and none by its name."""

from pathlib import Path

import pytest

from each import each
from memoryd.client.projects import known as projects
from memoryd.client.projects.project import project_namespace
from memoryd.client.projects.roots import find_place, is_pattern

CONFIG = '[shared.acme]\nserver = "ssh://home"\nrepositories = ["github.com/acme/*"]\n'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("MEMORYD_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path


def checkout(folder: Path, **remotes: str) -> Path:
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    parts = [f'[remote "{name}"]\n\turl = {url}\n' for name, url in remotes.items()]
    (folder / ".git" / "config").write_text("[core]\n\tbare = false\n" + "".join(parts))
    return folder


def join(home: Path, text: str = CONFIG) -> None:
    (home / "config.toml").write_text(text)


@each(
    ("remotes", "place"),
    [
        (["github.com/acme/api"], "acme/api"),
        (["github.com/Acme/API"], "acme/api"),
        (["github.com/me/api", "github.com/acme/api"], "acme/api"),
        (["gitlab.com/group/part/web"], "acme/part/web"),
        (["example.org/it/one"], "acme/one"),
        (["example.org/it/ones"], ""),
        (["github.com/acmeinc/api"], ""),
        (["evil.org/github.com/acme/api"], ""),
        (["github.com/acme/.."], ""),
        (["github.com/acme/"], ""),
        (["/srv/github.com/acme/api"], ""),
        ([], ""),
    ],
)
def test_a_checkout_is_called_by_what_follows_the_fixed_part_of_a_pattern(remotes: list[str], place: str) -> None:
    patterns = ["github.com/acme/*", "gitlab.com/group/*", "example.org/it/one"]
    assert find_place(remotes, {"acme": patterns}) == place


@each(
    ("pattern", "is_one"),
    [
        ("github.com/acme/*", True),
        ("git.example.org:2222/acme/app-*", True),
        ("github.com/acme", True),
        ("github.com/*", False),
        ("*", False),
        ("*/acme/*", False),
        ("github.com/*/api", False),
        ("https://github.com/acme/*", False),
        ("/srv/git/*", False),
        ("", False),
    ],
)
def test_a_pattern_names_a_host_and_an_owner(pattern: str, is_one: bool) -> None:
    assert is_pattern(pattern) == is_one


def test_a_new_checkout_of_a_repository_lies_in_the_root_also_as_a_fork(home: Path) -> None:
    join(home)
    api = checkout(home / "a" / "api", origin="git@github.com:acme/api.git")
    fork = checkout(home / "b" / "api", origin="git@github.com:me/api.git", upstream="https://github.com/acme/api")
    assert [project_namespace(folder) for folder in (api, fork, api, fork)] == ["acme/api"] * 4


def test_no_checkout_lies_in_a_root_because_of_its_name(home: Path) -> None:
    join(home)
    like = checkout(home / "acme", origin="git@example.org:me/acme.git")
    assert project_namespace(like) == "acme-2"
    assert project_namespace(home / "x" / "acme") == "acme-2-2"
    unreadable = checkout(home / "y" / "acme")
    (unreadable / ".git" / "config").write_bytes(b"\xff")
    assert project_namespace(unreadable) == "acme-2"


def test_what_was_called_so_before_it_was_joined_or_in_a_copy_is_called_otherwise(home: Path) -> None:
    private = checkout(home / "private", origin="git@example.org:me/private.git")
    like = checkout(home / "acme", origin="git@example.org:me/acme.git")
    assert project_namespace(like) == "acme"
    project_namespace(private)
    with projects.change_table() as table:
        table["projects"][1]["namespace"] = "acme/private"
    assert project_namespace(private) == "acme/private"
    join(home)
    assert [project_namespace(folder) for folder in (private, like)] == ["private", "acme-2"]
    join(home, "")
    assert [project_namespace(folder) for folder in (private, like)] == ["private", "acme-2"]


def test_a_checkout_whose_remote_changes_leaves_the_root(home: Path) -> None:
    join(home)
    api = checkout(home / "api", origin="git@github.com:acme/api.git")
    assert project_namespace(api) == "acme/api"
    checkout(api, origin="git@github.com:me/api.git")
    assert project_namespace(api) == "api"
    checkout(api, origin="git@github.com:acme/api.git")
    assert project_namespace(api) == "acme/api"


def test_another_clone_of_a_fork_without_its_upstream_is_outside(home: Path) -> None:
    join(home)
    one = checkout(home / "a" / "api", origin="git@github.com:me/api.git", upstream="https://github.com/acme/api")
    two = checkout(home / "b" / "api", origin="git@github.com:me/api.git")
    assert [project_namespace(folder) for folder in (one, two, one, two)] == ["acme/api", "api", "acme/api", "api"]


@each("text", ["[shared", "shared = 5", "[shared.acme]\nrepositories = 7", '[shared]\nacme = "x"', "# shared"])
def test_a_configuration_that_is_wrong_stops_no_hook(home: Path, text: str) -> None:
    join(home, text)
    assert project_namespace(checkout(home / "api", origin="git@github.com:acme/api.git")) == "api"
