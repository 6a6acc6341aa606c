"""memctl project: who has which namespace, and another name with the memories that belong to it."""

from pathlib import Path
from typing import Any

import pytest
from fake_daemon import Memctl

from conversing import resting
from each import each
from memoryd.client import Client
from memoryd.client.programs.memctl import project
from memoryd.client.projects.project import project_namespace
from memoryd.client.protocol import List, NewTurn, Observe, Tiers


@pytest.fixture(autouse=True)
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(folder))
    return folder


def met(*paths: Path) -> list[str]:
    """Have a hook or an MCP server meet folders."""
    for path in paths:
        path.mkdir(parents=True, exist_ok=True)
    return list(map(project_namespace, paths))


def held(client: Client, namespace: str) -> list[str]:
    return sorted(memory.content for memory in client.call(List(namespace=namespace, reach="exact", limit=100)))


def say(client: Client, namespace: str, *texts: str) -> int:
    said = [NewTurn(role="user", content=text) for text in texts]
    return client.call(Observe(turns=said, session="s", namespace=namespace)).accepted


def heard(client: Client, namespace: str) -> dict[str, int]:
    """Return how many turns wait to be learned from."""
    return resting(client.call(Tiers(namespace=namespace, reach="exact" if namespace else "all")))


def namespaces(memctl: Memctl) -> list[str]:
    return [row["namespace"] for row in memctl("project", "list", "--json").json]


def test_projects_are_listed_without_a_daemon(memctl: Memctl, home: Path) -> None:
    assert memctl("project").out.startswith("No projects yet")
    assert memctl("project", "--json").json == []
    met(home / "a" / "api", home / "b" / "api")
    rows = memctl("project", "list", "--json").json
    assert rows[1] == {"namespace": "api-2", "remote": "", "folders": [str(home / "b" / "api")]}
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


def test_turns_and_tokens_go_along_and_a_rename_takes_all_of_it_back(
    client: Client, daemon: Any, memctl: Memctl, home: Path
) -> None:
    met(home / "api")
    token = client.add_token("robot", "api").token
    robot = Client(socket=client.socket_path, token=token, autostart=False)
    with Client("api", socket=client.socket_path, autostart=False) as inside:
        inside.add("We pay by invoice.")
        inside.observe([{"role": "user", "content": "From May on we pay by invoice."}], session="s")
    assert robot.list().total == 1
    assert memctl("project", "rename", "api", "acme/payments").out.splitlines() == [
        "api is called acme/payments from now on; 1 memory, 1 turn moved there.",
        "Bound to acme/payments from now on: token robot. It sees acme and the root /, too.",
        "`memctl project rename acme/payments api` takes that back.",
    ]
    assert [(one.namespace, one.turns) for one in client.get_log()] == [("acme/payments", 1)]
    assert heard(client, "acme/payments") == heard(client, "") != {}
    assert daemon.core.store.find_problems() == []
    assert robot.list().total == 1, "a connection that is open follows its token"
    robot.close()
    assert memctl("project", "rename", "acme/payments", "api").code == 0
    assert [(one.namespace, one.turns) for one in client.get_log()] == [("api", 1)]
    assert held(client, "api") == ["We pay by invoice."]
    assert [one.namespace for one in client.list_tokens()] == ["api"]


def test_a_full_l0_takes_no_more_than_it_holds(client: Client, daemon: Any, memctl: Memctl, home: Path) -> None:
    met(home / "one", home / "two")
    for name in ("one", "two"):
        say(client, name, *(f"We keep {name} {number} in box {number}." for number in range(15)))
    assert memctl("project", "rename", "two", "one", "--join", "--json").json["turns"] == 15
    with Client("one", socket=client.socket_path, autostart=False) as inside:
        assert inside.turns(reach="exact").total == 20
        assert inside.list(reach="exact", type=["turn"]).total == 10
    assert daemon.core.store.find_problems() == []


def test_a_pause_goes_along_and_what_was_said_in_it_stays_out(
    client: Client, memctl: Memctl, home: Path, clock: Any
) -> None:
    from memoryd.client.protocol.backfill import Backfill, PastTurn

    met(home / "blog")
    in_pauses = []
    for is_over in (True, False):
        clock.advance(60)
        memctl("observe", "off", "--namespace", "blog")
        clock.advance(60)
        in_pauses.append(clock())
        clock.advance(60)
        memctl(*["observe", "on", "--namespace", "blog"] if is_over else ["observe", "status"])
    assert memctl("project", "rename", "blog", "garden").code == 0
    paused = "Observing is paused in the namespace garden; `memctl observe on --namespace garden` ends that."
    assert memctl("observe", "status").out.splitlines()[0] == paused
    assert say(client, "garden", "The heron is in the pond.") == 0
    memctl("observe", "on", "--namespace", "garden")
    clock.advance(60)
    assert say(client, "garden", "The heron is in the pond.") == 1
    for namespace in ("blog", "garden"):
        for number, at in enumerate(in_pauses):
            said = PastTurn(id=f"{number:032x}", role="user", content=f"The key is under mat {number}.", created_at=at)
            done = client.call(Backfill(namespace=namespace, session="past", turns=[said]))
            assert (done.taken, sum(done.left_out.values())) == (0, 1), (namespace, number)


def test_a_pause_of_what_is_around_holds_for_a_project_that_leaves_it(
    client: Client, memctl: Memctl, home: Path
) -> None:
    met(home / "blog")
    memctl("project", "rename", "blog", "acme/blog")
    memctl("observe", "off", "--namespace", "acme")
    memctl("project", "rename", "acme/blog", "acme/site")
    assert [one.name for one in client.get_observing().pauses] == ["acme"]
    memctl("project", "rename", "acme/site", "garden")
    assert [one.name for one in client.get_observing().pauses] == ["acme", "garden"]


def test_a_name_of_the_settings_is_not_left_behind(
    start_daemon: Any, memctl: Memctl, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_SOCKET", str(start_daemon(observe={"never": ["blog"]}).socket))
    met(home / "blog")
    refused = memctl("project", "rename", "blog", "garden")
    assert (refused.code, refused.err) == (
        1,
        "memctl: `never` of [observe] in the settings names blog; put garden there, too, before the project has that"
        " name.\n",
    )
    assert namespaces(memctl) == ["blog"]


def test_a_folder_has_its_name_before_the_first_session(daemon: Any, memctl: Memctl, home: Path) -> None:
    (home / "src/fresh").mkdir(parents=True)
    (home / "src/shop").mkdir()
    out = memctl("project", "rename", str(home / "src/fresh"), "shop2").out
    assert out == "~/src/fresh is called shop2 from now on.\n"
    assert project_namespace(home / "src/fresh") == "shop2"
    assert memctl("project", "rename", str(home / "src/shop"), "shop").out == "~/src/shop is called shop from now on.\n"
    (home / "other").mkdir()
    assert "--join lets both share it" in memctl("project", "rename", str(home / "other"), "shop").err
    assert memctl("project", "rename", str(home), "shop3").err.endswith("is not the folder of one project.\n")
    assert namespaces(memctl) == ["shop2", "shop"]


def test_a_folder_without_git_that_is_gone_leaves_its_name_to_another(
    client: Client, memctl: Memctl, home: Path
) -> None:
    met(home / "old/shop", home / "new/shop")
    with Client("shop", socket=client.socket_path, autostart=False) as inside:
        inside.add("We sell herons.")
    (home / "old/shop").rmdir()
    assert memctl("project", "rename", str(home / "new/shop"), "shop").code == 0
    assert namespaces(memctl) == ["shop"]
    assert [project_namespace(home / name / "shop") for name in ("old", "new")] == ["shop", "shop"]
    assert namespaces(memctl) == ["shop"], "past sessions that name its former folder are of it"
    assert held(client, "shop") == ["We sell herons."]


def test_a_checkout_that_is_gone_shares_its_name_with_the_folder_that_is_given_it(
    client: Client, memctl: Memctl, home: Path
) -> None:
    (home / "old/shop/.git").mkdir(parents=True)
    (home / "old/shop/.git/config").write_text('[remote "origin"]\n\turl = https://example.org/ada/shop.git\n')
    (home / "old/shop/.git/HEAD").write_text("ref: refs/heads/main\n")
    assert project_namespace(home / "old/shop") == "shop"
    with Client("shop", socket=client.socket_path, autostart=False) as inside:
        inside.add("We sell herons.")
    (home / "old").rename(home / "away")
    (home / "new/shop").mkdir(parents=True)
    assert memctl("project", "rename", str(home / "new/shop"), "shop").code == 0
    assert project_namespace(home / "new/shop") == "shop"
    assert project_namespace(home / "away/shop") == "shop", "a checkout of it is of the same project still"
    assert held(client, "shop") == ["We sell herons."]


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


def test_a_folder_that_is_written_like_a_namespace_is_pointed_out(
    daemon: Any, memctl: Memctl, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "src/blog").mkdir(parents=True)
    monkeypatch.chdir(home)
    assert "src/blog is a folder here: write ./src/blog." in memctl("project", "rename", "src/blog", "blog").err


@each(
    ("words", "code", "said"),
    [
        (("nothing", "new"), 1, "There is no project 'nothing'; `memctl project list` shows them."),
        (("/nowhere", "new"), 1, "There is no project '/nowhere'"),
        (("api", "a//b"), 1, "'a//b' cannot be a namespace"),
        (("api", "/"), 1, "'/' cannot be a namespace"),
        (("api", "a\nb"), 1, "cannot be a namespace"),
        (("api", "a/../b"), 1, "'a/../b' cannot be a namespace"),
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


def test_without_a_daemon_nothing_changes_since_a_pause_could_be_left_behind(memctl: Memctl, home: Path) -> None:
    met(home / "api")
    assert memctl("project", "rename", "api", "payments", "--no-autostart").code == 3
    assert namespaces(memctl) == ["api"]


def test_a_folder_that_moved_gets_its_project_back_with_what_was_kept_there_since(
    client: Client, memctl: Memctl, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met(home / "old/api")
    with Client("api", socket=client.socket_path, autostart=False) as inside:
        inside.add("We pay by invoice.")
    (home / "new").mkdir()
    (home / "old/api").rename(home / "new/api")
    assert project_namespace(home / "new/api") == "api-2"
    say(client, "api-2", "From May on we pay by card.")
    memctl("observe", "off", "--namespace", "api-2")
    monkeypatch.chdir(home / "new/api")
    assert memctl("project", "move", "api").out == (
        "The project api is in ~/new/api from now on; 1 turn moved there from api-2.\n"
    )
    [row] = memctl("project", "list", "--json").json
    assert row == {"namespace": "api", "remote": "", "folders": [str(home / "old/api"), str(home / "new/api")]}
    assert memctl("project").out.splitlines()[1].split() == ["api", "~/new/api"]
    assert [one.name for one in client.get_observing().pauses] == ["api"]
    assert held(client, "api") == ["We pay by invoice."]
    assert [(one.namespace, one.turns) for one in client.get_log()] == [("api", 1)]
    assert memctl("project", "move", "api").err == f"memctl: {home}/new/api is of the project api already.\n"


def test_a_checkout_whose_remote_changed_gets_its_project_back_before_any_session(
    daemon: Any, memctl: Memctl, home: Path
) -> None:
    (home / "api/.git").mkdir(parents=True)
    config, text = home / "api/.git/config", '[remote "origin"]\n\turl = https://example.org/{}.git\n'
    for owner in ("ada", "acme"):
        config.write_text(text.format(owner))
        if owner == "ada":
            assert project_namespace(home / "api") == "api"
    assert memctl("project", "move", "api", str(home / "api/src")).code == 1, "there is no such folder"
    assert memctl("project", "move", "api", str(home / "api")).out == "The project api is in ~/api from now on.\n"
    assert memctl("project", "list", "--json").json == [
        {"namespace": "api", "remote": "example.org/ada", "folders": []},
        {"namespace": "api", "remote": "example.org/acme", "folders": [str(home / "api")]},
    ]
    assert memctl("project", "move", "api", str(home)).err.endswith("is not the folder of one project.\n")
    assert "There is no project 'web'" in memctl("project", "move", "web", str(home / "api")).err


def test_a_folder_that_leaves_a_shared_name_stays_paused(client: Client, memctl: Memctl, home: Path) -> None:
    met(home / "a" / "notes", home / "b" / "notes")
    memctl("project", "rename", "notes-2", "notes", "--join")
    memctl("observe", "off", "--namespace", "notes")
    memctl("project", "rename", str(home / "b" / "notes"), "birds")
    assert sorted(one.name for one in client.get_observing().pauses) == ["birds", "notes"]
