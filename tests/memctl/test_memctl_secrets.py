"""memctl says what the daemon took out, and passes on that it is to stay."""

import json
from pathlib import Path

import pytest
from fake_daemon import Memctl

from each import each

TOKEN = "".join(("gh", "p_", "q7Rt2ZkP9wXc4VbN8mLs3HdJ6gFy1TaE5uKo"))


@pytest.mark.usefixtures("daemon")
def test_add_says_what_was_taken_out_and_how_to_keep_it(memctl: Memctl) -> None:
    added = memctl("add", f"push with {TOKEN}", "--json")
    assert added.err == ("memctl: removed before storing: 1 GitHub token. --allow-secrets stores texts as they are.\n")
    reply = json.loads(added.out)
    assert reply["redacted"] == {"GitHub token": 1}
    assert json.loads(memctl("get", reply["id"], "--json").out)["content"] == "push with [secret: GitHub token]"


@pytest.mark.usefixtures("daemon")
@each("words", [("add", "x {}"), ("observe", "Remember for the release: x {}")])
def test_with_allow_secrets_nothing_is_taken_out(memctl: Memctl, words: tuple[str, ...]) -> None:
    given = [word.format(TOKEN) for word in words]
    assert "removed before" in memctl(*given).err
    assert memctl(*given, "--allow-secrets").err == ""


@pytest.mark.usefixtures("daemon")
def test_a_command_that_takes_out_a_credential_names_only_an_option_that_it_has(memctl: Memctl) -> None:
    id = memctl("add", "The deploys need a token", "--json").json["id"]
    for words in (("tag", id, f"token={TOKEN}"), ("feedback", id, "--useful", "--note", f"it worked with {TOKEN}")):
        assert memctl(*words).err == "memctl: removed before storing: 1 GitHub token.\n"


@pytest.mark.usefixtures("daemon")
def test_seeds_imports_and_notes_say_it_too(memctl: Memctl, folder: Path) -> None:
    (folder / "seed.jsonl").write_text(json.dumps({"content": f"seeded {TOKEN}"}))
    seeded = memctl("import", str(folder / "seed.jsonl"))
    assert "1 GitHub token" in seeded.err
    assert "Added in /: 1 memory" in seeded.out
    memctl("import", str(folder / "seed.jsonl"), "--allow-secrets")
    exported = memctl("export").out
    assert TOKEN in exported
    (folder / "all.jsonl").write_text(exported)
    again = memctl("import", str(folder / "all.jsonl"), "--overwrite")
    assert "1 GitHub token" in again.err
    root = folder / "notes"
    root.mkdir()
    memctl("workspace", "add", str(root), "--namespace", "notes")
    assert "1 GitHub token" in memctl("remember", f"x {TOKEN}", "--workspace", "notes").err


def test_an_expression_of_the_allow_list_that_is_none_is_refused_with_its_place(memctl: Memctl, folder: Path) -> None:
    (folder / "config.toml").write_text('[privacy]\nallow = ["(unfinished"]\n')
    refused = memctl("config")
    assert refused.code == 1
    assert "is not a regular expression" in refused.err
    assert "`privacy.allow`" in refused.err


@pytest.mark.usefixtures("daemon")
def test_private_passages_are_said_too_and_no_option_keeps_them(memctl: Memctl) -> None:
    added = memctl("add", "We deploy at six <private>as Kim asked</private>", "--allow-secrets")
    assert added.err == "memctl: removed before storing: 1 private passage.\n"
    assert "Kim" not in memctl("export").out
    assert "All of it is marked <private>" in memctl("add", "<private>Kim leaves").err
