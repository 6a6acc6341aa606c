"""Where a memory goes that no namespace is named for: to the project of the current folder, else to the root."""

from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import Memctl


@pytest.fixture
def checkout(folder: Path, daemon: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git checkout with the current folder in it, beside a daemon."""
    monkeypatch.setenv("HOME", str(folder))
    (folder / "code/api/.git").mkdir(parents=True)
    (folder / "code/api/src").mkdir()
    monkeypatch.chdir(folder / "code/api/src")
    return folder / "code/api"


def contents(memctl: Memctl, *words: str) -> set[str]:
    return {memory["content"] for memory in memctl("list", "--json", *words).json}


def test_an_add_in_a_project_goes_there_and_says_who_sees_it(checkout: Path, memctl: Memctl) -> None:
    assert memctl("add", "We cache in Valkey").out.endswith("\nKept in api: seen by sessions of that project.\n")
    assert memctl("add", "We cache in Valkey", "--json").json["namespace"] == "api"
    kept = memctl("add", "My passport is in the desk", "--namespace", "/").out
    assert kept.endswith("\nKept at /: yours, found everywhere when asked for.\n")
    kept = memctl("add", "I like tabs", "--namespace", "/", "--type", "preference").out
    assert kept.endswith("\nKept at /: yours, shown in all projects.\n")
    kept = memctl("add", "We deploy on Tuesdays", "--namespace", "acme").out
    assert kept.endswith("\nKept in acme: seen there and from every namespace inside it.\n")
    assert contents(memctl, "--namespace", "api", "--reach", "exact") == {"We cache in Valkey"}
    assert contents(memctl, "--namespace", "/") == {"My passport is in the desk", "I like tabs"}


def test_outside_of_a_project_and_with_a_token_the_place_is_as_before(
    checkout: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = memctl("token", "add", "beta", "--namespace", "beta", "--json").json["token"]
    monkeypatch.setenv("MEMORYD_TOKEN", token)
    assert "Kept in beta: seen there" in memctl("add", "We cache in Valkey").out
    monkeypatch.delenv("MEMORYD_TOKEN")
    monkeypatch.setenv("MEMORYD_NAMESPACE", "acme")
    assert "Kept in acme: seen there" in memctl("add", "We deploy on Tuesdays").out
    monkeypatch.delenv("MEMORYD_NAMESPACE")
    monkeypatch.chdir(checkout.parent)
    assert "Kept at /: yours" in memctl("add", "My passport is in the desk").out


def test_turns_and_keys_go_to_the_project(checkout: Path, memctl: Memctl) -> None:
    (checkout / "seed.jsonl").write_text('{"content": "one"}\n{"content": "two", "namespace": "acme"}\n')
    assert memctl("add", "Valkey", "--key", "cache").out.startswith("Stored: cache in api (")
    assert memctl("get", "--key", "cache", "--json").json["namespace"] == "api"
    assert memctl("observe", "Never deploy the API on Fridays.").out == "Recorded 1 turn in api.\n"
    assert memctl("import", str(checkout / "seed.jsonl")).out == "Added in api, acme: 2 memories.\n"
    held = contents(memctl, "--reach", "exact")
    assert {"Valkey", "one"} <= held
    assert "two" not in held
    assert memctl("delete", "--key", "cache").code == 0
    assert memctl("add", "Valkey", "--key", "cache", "--namespace", "/").out.startswith("Stored: cache (")


def test_what_reads_sees_everything_until_a_reach_is_asked_for(checkout: Path, memctl: Memctl) -> None:
    memctl("add", "Valkey is the cache of the API")
    memctl("add", "Valkey is the cache of the page", "--namespace", "web")
    memctl("add", "Valkey is my favourite cache", "--namespace", "/")

    def found(*words: str) -> set[str]:
        hits = memctl("search", "Valkey", "cache", "--json", *words).json
        return {hit["content"].rpartition(" ")[2] if "of" in hit["content"] else "mine" for hit in hits}

    assert found() == {"API", "page", "mine"}
    assert found("--reach", "visible") == {"API", "mine"}
    assert found("--reach", "exact") == {"API"}
    assert found("--namespace", "/") == {"mine"}


def test_a_preview_of_hooks_is_what_an_agent_gets_there(
    checkout: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("add", "Deploys run on Tuesdays", "--type", "rule", "--namespace", "other")
    answer = "The importer reads the CSV files of the old shop now, with semicolons between columns."
    memctl("observe", answer, "--session", "s1", "--role", "assistant")
    assert answer in memctl("hooks", "preview").out
    assert "Tuesdays" not in memctl("hooks", "preview").out
    monkeypatch.chdir("/")
    assert "shown nothing at the start" in memctl("hooks", "preview").err


def test_a_preview_of_hooks_in_a_new_project_notes_nothing_and_says_its_name(checkout: Path, memctl: Memctl) -> None:
    other = checkout.parent / "other" / "api"
    (other / ".git").mkdir(parents=True)
    memctl("add", "Valkey is the cache of the API")
    assert "new here" not in memctl("hooks", "preview").err
    before = memctl("project", "list").out
    with chdir(other):
        told = memctl("hooks", "preview").err
        assert "a project that is new here; it will be called api-2." in told
        assert "If it is api, moved: memctl project move api ." in told
    assert memctl("project", "list").out == before


def test_a_list_in_a_project_says_how_to_leave_out_other_projects(checkout: Path, memctl: Memctl) -> None:
    memctl("add", "Valkey is the cache of the API")
    memctl("add", "Commits are in English", "--namespace", "/")
    assert "--reach visible" not in memctl("list").out
    memctl("add", "Redis is the cache of the page", "--namespace", "web")
    assert memctl("list").out.endswith("of all projects; what api sees: `memctl list --reach visible`\n")
    assert "--reach visible" not in memctl("list", "--reach", "all").out
    assert "of the page" not in memctl("list", "--reach", "visible").out


def test_a_context_in_a_project_is_what_an_agent_gets_there(checkout: Path, memctl: Memctl) -> None:
    memctl("add", "Valkey is the cache of the API", "--type", "decision")
    memctl("add", "Valkey is the cache of the page", "--type", "decision", "--namespace", "web")

    def given(*words: str) -> str:
        return memctl("context", "Valkey", "cache", *words).out

    assert ("of the API" in given(), "of the page" in given()) == (True, False)
    assert "of the page" in given("--reach", "all")


def test_a_context_without_anything_says_where_it_looked_and_one_that_is_cut_what_is_not_in_it(
    checkout: Path, memctl: Memctl
) -> None:
    memctl("add", "Valkey is the cache of the page", "--namespace", "web")
    said = memctl("context", "Valkey", "cache").err
    assert said.startswith("memctl: nothing relevant enough can be seen from api; `--reach all` looks everywhere; ")
    assert memctl("context", "plums", "--reach", "all").err.startswith("memctl: nothing relevant enough; ")
    for n in range(4):
        memctl("add", f"The Valkey cache number {n} has very many words about it", "--no-dedup")
    words = ("context", "Valkey", "cache", "--max-tokens", "40")
    made = memctl(*words, "--json")
    assert f"{len(made.json['omitted_ids'])} more memories are relevant (--max-tokens)." in made.err
    out = memctl("explain", "--last").out
    assert ("  given, " in out, "context: cut by the budget of 40 tokens" in out) == (True, True)


def test_what_is_for_all_that_is_stored_stays_so_in_a_project(checkout: Path, memctl: Memctl) -> None:
    memctl("add", "The page has no build step", "--namespace", "web")
    memory = memctl("list", "--json").json[0]["id"]
    assert "Shared 1 memory with ops" in memctl("share", memory, "--to", "ops").out
    assert memctl("observe", "off", "--json").json["pauses"][0]["name"] == ""
    assert memctl("token", "add", "alpha").code == 2
    assert "The page has no build step" in memctl("export").out


def test_on_a_socket_that_is_bound_to_a_token_everything_is_what_that_may_see(
    start_daemon: Callable[..., Any], folder: Path, memctl: Memctl
) -> None:
    place = folder / "box" / "s"
    daemon = start_daemon(access={"sockets": {str(place): "box"}})
    with daemon.client() as owner:
        owner.add_token("box", "acme/box")
    for namespace, text in (("acme", "cache of all"), ("acme/other", "cache of others")):
        with daemon.client(namespace) as client:
            client.add(text)
    found = memctl("search", "cache", "--socket", str(place))
    assert ("cache of all" in found.out, "cache of others" in found.out) == (True, False)
    assert "cache of others" in memctl("search", "cache", "--socket", str(daemon.socket)).out
    assert "not 'all'" in memctl("search", "cache", "--reach", "all", "--socket", str(place)).err


def test_a_namespace_without_memories_of_its_own_is_said_to_have_none(checkout: Path, memctl: Memctl) -> None:
    memctl("add", "Valkey is the cache", "--namespace", "acme")
    memctl("add", "Ada drinks tea", "--namespace", "demo/users/ada")
    assert "; 1 are inside demo: `--reach subtree`." in memctl("list", "--namespace", "demo").out
    for words in ("list", "--type", "fact", "--before", "2020-01-01"), ("search", "zinc mines"):
        said = memctl(*words, "--namespace", "acme/ap").out
        assert "; there are none in acme/ap, `memctl namespaces` lists where there are some" in said
        assert "there are none in" not in memctl(*words, "--namespace", "acme").out
