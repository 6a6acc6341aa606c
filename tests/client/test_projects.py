"""The table of projects: who has which name, and who is known again after a move, a clone, a new remote."""

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from each import each
from memoryd.client.projects import known as projects
from memoryd.client.projects.checkout import remote_of
from memoryd.client.projects.known import FILE, FORMER, note_former
from memoryd.client.projects.project import project_namespace


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def data(home: Path) -> Path:
    return home / "data"


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def repository(folder: Path, remote: str = "", text: str = "") -> Path:
    """Make a checkout with one commit; `text` tells its history from others'."""
    folder.mkdir(parents=True)
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", text or str(folder))
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


def plain(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def moved(folder: Path, to: Path) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    return folder.rename(to)


def names(*folders: Path) -> list[str]:
    return [project_namespace(folder) for folder in folders]


# Names ---------------------------------------------------------------------------------------------------------------


def test_checkouts_of_one_name_have_a_namespace_each(home: Path) -> None:
    one = repository(home / "client-a" / "api", "git@example.org:client-a/api.git")
    two = repository(home / "client-b" / "api", "git@example.org:client-b/api.git")
    three = plain(home / "client-c" / "api")
    assert names(one, two, three) == ["api", "api-2", "api-3"]
    assert names(three, two, one) == ["api-3", "api-2", "api"], "each keeps its own"


def test_folders_outside_of_git_are_known_by_their_paths(home: Path) -> None:
    one, two = plain(home / "a" / "notes"), plain(home / "b" / "notes")
    assert names(one, two) == ["notes", "notes-2"]
    assert names(plain(two / "deep")) == ["deep"]


def test_a_folder_that_is_called_like_a_number_given_before_has_one_of_its_own(home: Path) -> None:
    assert names(plain(home / "a" / "api"), plain(home / "b" / "api"), plain(home / "c" / "api-2")) == [
        "api",
        "api-2",
        "api-2-2",
    ]


def test_a_number_is_not_given_that_is_in_use_for_something_else(home: Path, data: Path) -> None:
    data.mkdir()
    note_former(str(data), ["api", "api-2"])
    assert names(plain(home / "a" / "api"), plain(home / "b" / "api")) == ["api", "api-3"]
    assert names(plain(home / "c" / "api-2")) == ["api-2"], "which is its own"


# Known again ---------------------------------------------------------------------------------------------------------


def test_clones_of_a_repository_are_one_project_whatever_they_are_called(home: Path) -> None:
    one = repository(home / "work" / "api", "git@example.org:acme/api.git")
    two = repository(home / "review" / "api", "https://me:secret@Example.org/acme/api")
    three = repository(home / "work" / "api-fix", "ssh://git@example.org/acme/api/")
    assert names(one, two, three, one) == ["api"] * 4


def test_a_clone_keeps_the_name_under_which_it_has_memories_already(home: Path, data: Path) -> None:
    data.mkdir()
    note_former(str(data), ["api", "api-fix"])
    url = "git@example.org:acme/api.git"
    assert names(repository(home / "api", url), repository(home / "api-fix", url)) == ["api", "api-fix"]
    assert names(repository(home / "api-new", url)) == ["api"]


def test_a_moved_checkout_is_known_again_by_its_remote(home: Path) -> None:
    folder = repository(home / "api", "https://example.org/acme/api.git")
    assert names(folder) == ["api"]
    assert names(moved(folder, home / "old" / "service")) == ["api"]
    assert names(repository(home / "api", "https://example.org/other/api.git")) == ["api-2"], "whoever takes its place"
    assert projects.take_origin(str(home / "api")) is None, "the project is elsewhere"


@pytest.mark.parametrize("is_git", [True, False])
def test_a_moved_folder_without_a_remote_is_a_new_project_and_the_old_one_is_told_once(
    is_git: bool, home: Path
) -> None:
    folder = (repository if is_git else plain)(home / "api")
    assert names(folder) == ["api"]
    to = moved(folder, home / "new" / "api")
    assert names(to, folder) == ["api-2", "api"], "past sessions name the old folder"
    found = projects.take_origin(str(to))
    assert found is not None
    assert (found[0]["namespace"], found[1]) == ("api-2", "api")
    assert projects.take_origin(str(to)) is None
    assert "origin" not in projects.read_table()["projects"][1]


def test_a_new_project_comes_from_none_whose_folder_is_there_or_is_called_otherwise(home: Path) -> None:
    names(plain(home / "a" / "api"), gone := plain(home / "a" / "web"))
    gone.rmdir()
    new = plain(home / "b" / "api")
    assert names(new) == ["api-2"]
    assert projects.take_origin(str(new)) is None


def test_two_remotes_are_two_projects_though_both_began_as_one_template(home: Path) -> None:
    one = repository(home / "a" / "api", "https://example.org/a/api", text="template")
    assert names(one) == ["api"]
    two = home / "b" / "api"
    subprocess.run(["cp", "-r", one, plain(home / "b")], check=True)
    git(two, "remote", "set-url", "origin", "https://example.org/b/api")
    subprocess.run(["rm", "-r", one], check=True)
    assert names(two) == ["api-2"]


def test_a_checkout_with_another_remote_is_a_new_project_and_the_old_one_is_told(home: Path) -> None:
    folder = repository(home / "api")
    assert names(folder) == ["api"]
    git(folder, "remote", "add", "origin", "https://example.org/a/api")
    assert names(folder) == ["api"], "it had none"
    for number, words in enumerate([["set-url", "origin", "https://example.net/b/api"], ["remove", "origin"]], 2):
        former = names(folder)
        git(folder, "remote", *words)
        assert names(folder) == [f"api-{number}"]
        found = projects.take_origin(str(folder))
        assert found is not None
        assert [found[1]] == former


def test_a_folder_keeps_its_name_when_git_comes_later(home: Path) -> None:
    folder = plain(home / "api")
    assert names(folder) == ["api"]
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "first")
    git(folder, "remote", "add", "origin", "https://example.org/a/api")
    assert names(folder) == ["api"]


def test_another_repository_at_the_same_path_is_another_project(home: Path) -> None:
    place = home / "workspace"
    one = repository(place, "https://example.org/a/api", text="one")
    assert names(one) == ["workspace"]
    moved(one, home / "aside" / "one")
    two = repository(place, "https://example.org/b/api", text="two")
    assert names(two) == ["workspace-2"]
    moved(two, home / "aside" / "two")
    moved(home / "aside" / "one", place)
    assert names(place) == ["workspace"]
    assert names(home / "aside" / "two") == ["workspace-2"]


def test_worktrees_are_one_project_also_those_of_a_bare_repository(home: Path) -> None:
    origin = repository(home / "origin")
    bare = home / "api" / ".bare"
    subprocess.run(["git", "clone", "--bare", origin, bare], check=True, capture_output=True)
    git(bare, "remote", "remove", "origin")
    for branch in ("main-line", "fix"):
        git(bare, "worktree", "add", "-b", branch, str(home / "api" / branch))
    assert names(home / "api" / "main-line", home / "api" / "fix") == ["main-line", "main-line"]


def test_a_submodule_is_a_project_of_its_own(home: Path) -> None:
    library = repository(home / "library")
    main = repository(home / "api")
    git(main, "submodule", "add", str(library), "vendor")
    assert names(main, main / "vendor", library) == ["api", "vendor", "library"]


# Remotes ---------------------------------------------------------------------------------------------


@each(
    ("url", "expected"),
    [
        ("git@example.org:acme/api.git", "example.org/acme/api"),
        ("https://me:token@Example.Org/acme/api.git/", "example.org/acme/api"),
        ("ssh://git@example.org:2222/acme/api", "example.org:2222/acme/api"),
        ("ssh://git@example.org:22/acme/api", "example.org/acme/api"),
        ("https://example.org:443/acme/api", "example.org/acme/api"),
        ("http://example.org:443/acme/api", "example.org:443/acme/api"),
        ("https://example.org/acme/api?access_token=secret", "example.org/acme/api"),
        ("/srv/git/api.git", "/srv/git/api"),
        ("file:///srv/git/api.git", "/srv/git/api"),
    ],
)
def test_a_remote_is_kept_without_what_does_not_tell_it_from_others(url: str, expected: str, home: Path) -> None:
    folder = home / "api" / ".git"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config").write_text(
        f'[core]\n\turl = no\n[remote "other"]\n\turl = https://example.org/other\n[remote "origin"]\n'
        f"\tfetch = +refs/heads/*:refs/remotes/origin/*\n\turl = {url}\n\tpushurl = no\n"
    )
    assert remote_of(str(home / "api")) == expected


def test_what_cannot_be_known_is_not_taken_for_nothing(home: Path) -> None:
    folder = repository(home / "api", "https://example.org/a/api")
    assert names(folder) == ["api"]
    before = projects.read_table()
    (folder / ".git" / "config").write_bytes(b"\xff")
    assert remote_of(str(folder)) is None
    assert names(folder) == ["api"]
    assert projects.read_table() == before


# The file ------------------------------------------------------------------------------------------------------------


def test_the_file_is_private_and_holds_no_credentials(home: Path, data: Path) -> None:
    names(repository(home / "api", "https://me:secret@example.org/acme/api"))
    assert "secret" not in (data / FILE).read_text()
    assert {stat.S_IMODE(path.stat().st_mode) for path in data.iterdir()} == {0o600}
    assert not list(data.glob("*.part"))


def test_a_damaged_file_stops_nobody_and_stays_as_it_is(home: Path, data: Path) -> None:
    data.mkdir()
    folders = plain(home / "a" / "api"), plain(home / "b" / "api")
    damaged = [b"", b"{", b"\xff", b"[]", b'{"projects": 1}', b'{"projects": [{"namespace": 1}]}']
    for content in (*damaged, b'{"x":' + b"[" * 100_000):
        (data / FILE).write_bytes(content)
        assert names(*folders) == ["api", "api"], content[:40]
        assert (data / FILE).read_bytes() == content


def test_files_that_cannot_be_read_stop_nobody(home: Path, data: Path) -> None:
    folder = plain(home / "a" / "api")
    data.write_text("")
    assert names(folder) == ["api"]
    data.unlink()
    (data / FILE).mkdir(parents=True)
    assert names(folder) == ["api"]
    (data / FILE).rmdir()
    (data / FORMER).write_bytes(b"\xff")
    assert names(folder) == ["api"]


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(projects, "_exchange", refuse)


def test_where_nothing_can_be_written_projects_are_apart_all_the_same(
    home: Path, data: Path, request: pytest.FixtureRequest
) -> None:
    assert names(plain(home / "a" / "api")) == ["api"]
    before = (data / FILE).read_bytes()
    request.getfixturevalue("full_disk")
    assert names(plain(home / "b" / "api")) == ["api-2"]
    assert (data / FILE).read_bytes() == before


def test_who_holds_the_lock_does_not_hold_up_others_for_long(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "_LOCK_LIMIT_S", 0.02)
    assert names(plain(home / "a" / "api")) == ["api"]
    with projects.change_table():
        assert names(plain(home / "b" / "api")) == ["api-2"]
    assert len(projects.read_table()["projects"]) == 1


def test_many_that_meet_projects_at_once_lose_none(home: Path) -> None:
    folders = [plain(home / f"client-{number}" / "api") for number in range(24)]
    code = (
        "import json, sys; from memoryd.client.projects import known, project; known._LOCK_LIMIT_S = 60.0;"
        "print(json.dumps(list(map(project.project_namespace, sys.argv[1:]))))"
    )

    def run(part: list[Path]) -> list[str]:
        done = subprocess.run([sys.executable, "-c", code, *map(str, part)], capture_output=True, text=True, check=True)
        return list(json.loads(done.stdout))

    with ThreadPoolExecutor() as pool:
        given = [name for part in pool.map(run, (folders[start::4] for start in range(4))) for name in part]
    assert sorted(given) == sorted(["api", *(f"api-{number}" for number in range(2, 25))])
    assert sorted(given) == sorted(project["namespace"] for project in projects.read_table()["projects"])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(projects, "_MAX_PROJECTS", 3)
    monkeypatch.setattr(projects, "_MAX_FOLDERS", 2)
    return None


@pytest.mark.usefixtures("small")
def test_projects_and_folders_that_are_gone_are_forgotten_in_the_end(home: Path) -> None:
    for number in range(5):
        names(folder := plain(home / f"trial-{number}"))
        if number < 4:
            folder.rmdir()
    known = [project["namespace"] for project in projects.read_table()["projects"]]
    assert known == ["trial-2", "trial-3", "trial-4"]
    url = "https://example.org/acme/api"
    for number in range(4):
        names(repository(home / f"clone-{number}" / "api", url))
    assert [len(project["folders"]) for project in projects.read_table()["projects"]][-1] == 2


# Names in use before -------------------------------------------------------------------------------------------------


def test_names_in_use_are_noted_once(data: Path) -> None:
    data.mkdir()
    note_former(str(data), {"b", "a"})
    note_former(str(data), {"c"})
    assert (data / FORMER).read_text() == "a\nb\n"
    assert projects.read_former() == ["a", "b"]


# Other names, other machines -----------------------------------------------------------------------------------------


def entry(namespace: str, *folders: Path) -> projects.Project:
    return projects.Project(namespace=namespace, remote="", folders=list(map(str, folders)))


def test_a_copy_says_what_its_projects_are_called_and_others_stay(home: Path) -> None:
    one, two, three = plain(home / "a/api"), plain(home / "b/api"), plain(home / "c/notes")
    assert names(one, two, three) == ["api", "api-2", "notes"]
    gone = entry("shop", home / "gone")
    done = projects.take_over([entry("acme/api", one), gone, entry("api-2", plain(home / "d"))])
    assert done == ([gone], {str(two): "api-2"})
    assert names(one, three) == ["acme/api", "notes"]
    assert names(two) == ["api"], "its name is another's now, so it was met anew"
    assert projects.take_over([]) == ([], {})


def test_a_folder_that_was_joined_to_a_project_after_the_copy_stays_one_of_it(home: Path) -> None:
    old, new = plain(home / "src/lab"), plain(home / "work/lab")
    assert names(old, new) == ["lab", "lab-2"]
    with projects.change_table() as table:
        table["projects"][1]["namespace"] = "lab"
    assert projects.take_over([entry("lab", old)]) == ([], {})
    assert names(old, new) == ["lab", "lab"]


def test_a_checkout_that_was_joined_to_another_repository_stays_with_it(home: Path) -> None:
    one, two = (repository(home / name, f"https://example.org/a/{name}") for name in ("api", "docs"))
    assert names(one, two) == ["api", "docs"]
    copied = projects.read_table()["projects"][:1]
    with projects.change_table() as table:
        table["projects"][1]["namespace"] = "api"
    assert projects.take_over(copied) == ([], {})
    assert names(one, two) == ["api", "api"]


def test_a_project_with_a_folder_here_is_not_missed_for_another_of_its_name_that_has_none(home: Path) -> None:
    shop, gone = entry("shop", plain(home / "shop")), entry("shop", home / "gone")
    missing, _ = projects.take_over([gone, shop])
    assert missing == []


def test_a_copy_of_another_machine_leaves_projects_the_folders_that_they_have_here(home: Path) -> None:
    url = "https://example.org/a/api"
    here = [repository(home / "src/api", url), plain(home / "src/shop"), repository(home / "src/site", url + "2")]
    assert names(*here) == ["api", "shop", "site"]
    api, shop, site = (entry(name, home / "old" / name) for name in ("api", "shop", "site"))
    api["remote"], site["remote"] = "example.org/a/api", "example.org/b/site"
    assert projects.take_over([api, shop, site]) == ([site], {str(here[2]): "site"})
    assert shop["folders"] == [str(home / "old/shop"), str(here[1])]
    assert names(*here) == ["api", "shop", "site-2"], "the last is another repository"


def test_a_folder_that_is_gone_is_still_of_the_project_that_it_held(home: Path) -> None:
    """Past sessions of another machine name it."""
    api = entry("api", home / "old/api")
    api["remote"] = "example.org/a/api"
    projects.take_over([api])
    assert names(home / "old/api") == ["api"]
    assert projects.read_table()["projects"] == [api]


def test_a_folder_that_a_project_left_is_still_of_it_until_something_else_is_there(home: Path) -> None:
    """Past sessions name it, also once a session was in the checkout at its new place."""
    folder = repository(home / "old/api", "https://example.org/a/api.git")
    assert names(folder) == ["api"]
    assert names(moved(folder, home / "new/api"), folder) == ["api", "api"]
    projects.take_over(projects.read_table()["projects"])
    assert names(folder) == ["api"]
    assert names(plain(folder)) == ["api-2"]
    folder.rmdir()
    assert names(folder, home / "new/api") == ["api-2", "api"]


def test_a_table_of_the_version_before_keeps_its_projects(home: Path, data: Path) -> None:
    """It told checkouts by their first commit, and kept folders that were gone apart."""
    api, notes = repository(home / "new" / "api"), plain(home / "notes")
    taken = plain(home / "taken" / "api")
    data.mkdir()
    old = [
        {
            "namespace": "api",
            "remote": "",
            "root": "0" * 40,
            "folders": [str(api)],
            "past": [str(home / "old" / "api")],
        },
        {"namespace": "diary", "remote": "", "root": "", "folders": [str(notes)], "former": ["notes"]},
        {"namespace": "x", "remote": "e.org/x", "root": "", "folders": [str(home / "x")], "past": [str(taken)]},
        {"namespace": "api-2", "remote": "", "root": "", "folders": [str(taken)]},
    ]
    (data / FILE).write_text(json.dumps({"projects": old}))
    places = (api, home / "old" / "api", notes, taken)
    assert names(*places) == ["api", "api", "diary", "api-2"]
    assert names(repository(home / "y", "https://e.org/x")) == ["x"]
    assert names(*places) == ["api", "api", "diary", "api-2"], "also once it was written again"
    assert {*projects.read_table()["projects"][0]} == {"namespace", "remote", "folders"}


def test_a_copy_of_the_version_before_keeps_folders_that_were_gone(home: Path) -> None:
    here = plain(home / "new" / "api")
    coming = entry("api", here)
    coming["past"] = [str(home / "old" / "api")]
    assert projects.take_over([coming]) == ([], {})
    assert names(here, home / "old" / "api") == ["api", "api"]
