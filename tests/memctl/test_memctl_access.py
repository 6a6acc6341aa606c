"""memctl share and memctl token, and memctl at a daemon that wants tokens."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import Memctl

from each import each


@pytest.mark.usefixtures("daemon")
def test_a_memory_is_shared_and_the_share_is_taken_back(memctl: Memctl) -> None:
    id = memctl("add", "Deploys are on Tuesday", "--namespace", "acme/api", "--json").json["id"]
    out = memctl("share", id[:6], "--to", "acme", "--namespace", "acme/api").out
    assert "Shared 1 memory with acme" in out
    assert [line.split()[:2] for line in out.splitlines()[:2]] == [["ID", "OUTCOME"], [id[:8], "copied"]]
    moved = memctl("share", id, "--to", "/", "--move", "--json").json
    assert [(one["id"], one["outcome"]) for one in moved["memories"]] == [(id, "moved")]
    assert memctl("get", id, "--json").json["namespace"] == ""
    memctl("undo", str(moved["operation"]))
    assert memctl("get", id, "--json").json["namespace"] == "acme/api"


@pytest.mark.usefixtures("daemon")
def test_a_share_inward_and_one_without_a_target_are_refused(memctl: Memctl) -> None:
    id = memctl("add", "Deploys are on Tuesday", "--namespace", "acme/api", "--json").json["id"]
    inward = memctl("share", id, "--to", "acme/api/alpha", "--namespace", "acme/api")
    assert (inward.code, inward.err) == (
        1,
        "memctl: acme/api/alpha does not enclose acme/api; memories are shared outward.\n",
    )
    assert memctl("share", id).code == 2


@pytest.mark.usefixtures("daemon")
def test_a_token_is_made_used_listed_and_revoked(memctl: Memctl, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "No tokens" in memctl("token").out
    made = memctl("token", "add", "alpha", "--namespace", "acme/alpha")
    secret = made.out.strip()
    assert secret.startswith("mt_")
    assert len(secret) > 40
    monkeypatch.setenv("MEMORYD_TOKEN", secret)
    assert memctl("add", "From alpha", "--json").code == 0
    assert memctl("list", "--json").json[0]["namespace"] == "acme/alpha"
    assert "for the machine's user" in memctl("token", "list").err
    monkeypatch.delenv("MEMORYD_TOKEN")
    [listed] = memctl("token", "list", "--json").json
    assert (listed["name"], listed["role"]) == ("alpha", "agent")
    assert listed["last_used_at"].endswith("Z")
    assert memctl("token", "list").out.split("\n")[0].split() == [
        "NAME",
        "NAMESPACE",
        "ROLE",
        "CREATED",
        "LAST",
        "USED",
    ]
    assert "Revoked alpha" in memctl("token", "revoke", "alpha").out
    monkeypatch.setenv("MEMORYD_TOKEN", secret)
    assert memctl("list").code == 1


@pytest.mark.usefixtures("daemon")
@each("words", [("list",), ("add", "x"), ("status",), ("mcp",), ("mcp", "--http")])
def test_a_token_that_a_failed_command_left_empty_gives_nobody_all_rights(
    memctl: Memctl, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("MEMORYD_TOKEN", "")
    refused = memctl(*words)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("memctl: MEMORYD_TOKEN is set but empty; give it a token")


@pytest.mark.usefixtures("daemon")
def test_a_token_needs_a_namespace(memctl: Memctl) -> None:
    refused = memctl("token", "add", "alpha")
    assert refused.code == 2
    assert "--namespace NS" in refused.err
    refused = memctl("token", "add", "alpha", "--namespace", "/")
    assert (refused.code, "a token cannot be for the root" in refused.err) == (2, True)


def test_memctl_finds_the_owners_token_of_a_daemon_with_another_data_directory(
    memctl: Memctl, start_daemon: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setenv("MEMORYD_SOCKET", str(start_daemon(access={"require_token": True}).socket))
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(folder / "elsewhere"))
    assert memctl("add", "By the owner", "--json").code == 0
    (folder / "elsewhere").mkdir(exist_ok=True)
    (folder / "elsewhere" / "owner.token").write_text("mt_of_another_daemon_with_its_own_data_directory\n")
    assert memctl("list", "--json").json[0]["content"] == "By the owner"


def test_an_owners_token_left_from_before_does_no_harm(
    memctl: Memctl, start_daemon: Callable[..., Any], folder: Path
) -> None:
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data" / "owner.token").write_text("mt_left_from_before_when_tokens_were_wanted_here\n")
    running = start_daemon()
    assert memctl("--socket", str(running.socket), "list", "--json").json == []
