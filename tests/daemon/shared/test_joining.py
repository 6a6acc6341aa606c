"""memctl shared create, join, leave between two real daemons over a real ssh."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from machine import Machine

from memoryd.client.protocol import GetShared, List, Share
from sshd import Sshd

pytestmark = pytest.mark.slow
CHECKOUT = Path(__file__).parents[3]  # docs/sharing.md


def join(home: Machine, laptop: Machine, *words: str) -> str:
    home.say("shared", "create", "acme", "--repo", "github.com/acme/*")
    return laptop.say("shared", "join", "acme", "--server", "ssh://place", "--memctl", home.memctl, "--yes", *words)


def test_a_root_is_made_joined_used_and_left(home: Machine, laptop: Machine) -> None:
    api = laptop.checkout("api", "git@github.com:acme/api.git")
    other = laptop.checkout("other", "git@github.com:me/other.git")
    assert [laptop.meet(folder) for folder in (api, other)] == ["api", "other"]
    laptop.add("Known before", "api")
    home.say("shared", "create", "acme", "--repo", "github.com/acme/*")
    words = ("shared", "join", "acme", "--server", "ssh://place", "--memctl", home.memctl)
    before = laptop.config.read_text()
    shown = laptop.say(*words, "--dry-run")
    assert "acme/api" in shown
    assert "other" not in shown
    assert laptop.config.read_text() == before
    assert "--yes" in laptop.refuse(*words)
    said = laptop.say(*words, "--yes")
    assert "what was saved before stays here" in said
    assert [laptop.meet(folder) for folder in (api, other)] == ["acme/api", "other"]
    assert laptop.meet(laptop.checkout("web", "https://github.com/acme/web")) == "acme/web"
    assert laptop.list_texts("acme", tier=["L1"]) == ["Known before"]
    assert home.list_texts() == []

    assert laptop.add("Releases are on Tuesdays", "acme/api").shared == "acme"
    home.add("Saved at home", "acme/web")
    assert laptop.list_texts("acme") == ["Known before", "Releases are on Tuesdays", "Saved at home"]
    assert "github.com/acme/*" in laptop.say("shared", "status")
    assert "this machine" in home.say("shared")
    assert laptop.check_roots()["state"] == "ok"
    assert "acme/web" in laptop.say("namespaces", "acme")
    home.say("shared", "create", "acme", "--repo", "github.com/acme/*", "--repo", "gitlab.com/acme/*")
    assert "other repositories" in laptop.check_roots()["message"]

    assert "1 memory" in laptop.say("shared", "leave", "acme", "--keep", "mine")
    assert "shared.acme" not in laptop.config.read_text()
    assert laptop.list_texts("acme") == ["Known before", "Releases are on Tuesdays"]
    assert home.list_texts("acme") == ["Releases are on Tuesdays", "Saved at home"]
    with laptop.process.client() as client:
        assert client.call(GetShared()).roots == []
    join(home, laptop)
    assert "2 memories" in laptop.say("shared", "leave", "acme", "--keep", "all")
    assert laptop.list_texts("acme") == ["Known before", "Releases are on Tuesdays", "Saved at home"]


def test_what_cannot_be_made_or_joined_is_said_in_a_sentence_and_changes_nothing(
    home: Machine, laptop: Machine, sshd: Sshd
) -> None:
    for name in ("/", "", "Acme", "a/b", "acme/api"):
        assert "cannot be a root" in home.refuse("shared", "create", name, "--repo", "github.com/acme/*")
    assert "host and owner" in home.refuse("shared", "create", "acme", "--repo", "*")
    home.add("Private", "acme")
    assert "--existing" in home.refuse("shared", "create", "acme", "--repo", "github.com/acme/*")
    home.say("erase", "--matching", "Private", "--yes")
    like = home.checkout("acme", "git@example.org:me/acme.git")
    assert home.meet(like) == "acme"
    assert "project rename" in home.refuse("shared", "create", "acme", "--repo", "github.com/acme/*")
    home.say("project", "rename", "acme", "mine")
    home.say("shared", "create", "acme", "--repo", "github.com/acme/*")
    home.say("token", "add", "eve", "--namespace", "other")

    def refuse(memctl: str = home.memctl, server: str = "ssh://place", *words: str) -> str:
        return laptop.refuse("shared", "join", "acme", "--server", server, "--memctl", memctl, "--yes", *words)

    assert "no machine" in refuse(server="home")
    assert "`ssh HOST true`" in refuse(server="ssh://nowhere.invalid")
    assert "--memctl" in refuse("no-such-memctl")
    assert "no memoryd" in refuse("echo Welcome; echo")
    assert "update memoryd there" in refuse("echo \"memctl: argument: invalid choice: 'serve-stdio'\" >&2; false")
    assert "token add acme" in refuse(home.memctl, "ssh://place", "--token", "bob")
    assert "is for other, not for acme" in refuse(home.memctl, "ssh://place", "--token", "eve")
    newer = laptop.folder / "newer"
    newer.write_text("import sys, msgspec\nfrom memoryd.client.transport.frames import frame\n"
        "greeting = {'name': 'acme', 'namespace': 'acme', 'role': 'agent', 'protocol': 99}\n"
        "sys.stdout.buffer.write(frame(msgspec.msgpack.encode((0, 0, greeting))))\n")  # fmt: skip
    assert "version 99 of the protocol" in refuse(f"{sys.executable} {newer}")
    assert "which machine" in laptop.refuse("shared", "join", "acme")
    assert "No root acme" in laptop.refuse("shared", "leave", "acme")
    laptop.say("shared", "join", "acme", "--server", "ssh://place", "--memctl", home.memctl, "--yes")
    (sshd.folder / "keys").write_text("")
    assert "Permission denied" in refuse()
    assert laptop.check_roots()["state"] == "fail"
    assert "Permission denied" in laptop.check_roots()["message"]
    assert laptop.list_texts() == []


def test_a_project_is_not_renamed_into_a_root_or_out_of_one(home: Machine, laptop: Machine) -> None:
    other, api = (laptop.checkout(name, f"git@github.com:{who}/{name}") for name, who in (("o", "me"), ("api", "acme")))
    assert laptop.meet(other) == "o"
    join(home, laptop)
    assert laptop.meet(api) == "acme/api"
    laptop.add("Decided", "acme/api")
    for words in (("o", "acme/o"), ("o", "acme"), ("acme/api", "api"), (str(api), "api")):
        assert "memctl share ID --to acme" in laptop.refuse("project", "rename", *words)
    assert "memctl share ID --to acme" in laptop.refuse("project", "move", "acme/api", str(other))
    assert home.list_texts() == ["Decided"]
    like = laptop.checkout("acme", "git@github.com:me/acme")
    assert laptop.meet(like) == "acme-2"


def test_who_is_revoked_is_told_so_and_leaves_without_a_copy(home: Machine, laptop: Machine) -> None:
    join(home, laptop)
    laptop.add("Shared", "acme/api")
    home.say("token", "revoke", "acme")
    refused = laptop.refuse("shared", "leave", "acme")
    assert "not known here" in refused
    assert "--keep none" in refused
    laptop.say("shared", "leave", "acme", "--keep", "none")
    assert laptop.list_texts() == []


def test_a_join_says_that_the_daemon_has_another_environment(home: Machine, laptop: Machine, sshd: Sshd) -> None:
    program = sshd.programs / "ssh"
    script = program.read_text().replace("exec", '[ "$AGENT" ] || { echo "Permission denied" >&2; exit 255; }\nexec')
    program.write_text(script)
    home.say("shared", "create", "acme", "--repo", "github.com/acme/*")
    laptop.process.environment["AGENT"] = "mine"  # memctl has it, the daemon was started without
    words = ("shared", "join", "acme", "--server", "ssh://place", "--memctl", home.memctl, "--yes")
    said = laptop.run(*words)
    assert (said.returncode, "the daemon does not: " in said.stderr, "Permission denied" in said.stderr) == (
        0,
        True,
        True,
    )
    laptop.say("down")
    laptop.say("up")
    assert "the daemon" not in laptop.run(*words).stderr
    assert laptop.add("Shared", "acme/api").shared == "acme"


def test_a_copy_of_before_shares_nothing(home: Machine, laptop: Machine) -> None:
    join(home, laptop)
    laptop.add("Shared", "acme/api")
    laptop.say("backup")
    laptop.say("shared", "leave", "acme", "--keep", "none")
    laptop.say("restore", "latest")
    added = laptop.add("Private again", "acme/api")
    assert not added.shared
    assert home.list_texts() == ["Shared"]
    assert laptop.list_texts() == ["Private again"]
    for path in laptop.process.data.rglob("*"):
        assert not (path.is_file() and b"ssh://place" in path.read_bytes()), path


@pytest.mark.slow
def test_a_copy_of_before_an_exclude_sends_nothing_of_it(home: Machine, laptop: Machine) -> None:
    join(home, laptop)
    assert laptop.add("Shared", "acme/hr").shared == "acme"
    laptop.say("backup")
    settings = laptop.config.read_text()
    laptop.config.write_text(settings.replace("[shared.acme]", '[shared.acme]\nexclude = ["acme/hr"]'))
    laptop.say("up", "--restart")
    assert not laptop.add("Private", "acme/hr").shared
    laptop.say("restore", "latest")
    assert not laptop.add("Private again", "acme/hr").shared
    assert home.list_texts() == ["Shared"]


def test_a_root_is_made_on_the_other_machine(home: Machine, laptop: Machine) -> None:
    words = ("--repo", "github.com/acme/*", "--server", "ssh://place", "--memctl", home.memctl)
    assert "acme lies on this machine" in laptop.say("shared", "create", "acme", *words)
    assert "github.com/acme" in home.config.read_text()
    assert "cannot be a root" in laptop.refuse("shared", "create", "Acme", *words)
    home.add("Private", "web")
    assert "--existing" in laptop.refuse("shared", "create", "web", *words)


def test_the_commands_of_the_page_do_what_it_says(home: Machine, laptop: Machine, sshd: Sshd) -> None:
    page = (CHECKOUT / "docs" / "sharing.md").read_text()
    blocks = re.findall(r"^```bash\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    at_home, there, of_ada = ([shlex.split(line, comments=True)[1:] for line in one.splitlines()] for one in blocks)
    [forced] = re.findall(r'command="memctl ([^"]+)"', page)
    web = home.checkout("web", "git@github.com:acme/web.git")
    assert home.meet(web) == "web"
    home.add("I like tabs", "web", "preference")
    *_, said = [home.confirm("acme", *words) for words in at_home]
    assert "preferences and what was saved before too" in said
    assert home.meet(web) == "acme/web"
    sshd.allow(f"{home.memctl} serve-stdio acme")
    for words in there:
        laptop.confirm("acme", *words)
    assert laptop.add("Releases are on Tuesdays", "acme/web").shared == "acme"
    for words in of_ada:
        home.say(*words)
    sshd.allow(f"{home.memctl} {forced}")
    laptop.confirm("acme", "shared", "join", "acme", "--server", "ssh://home", "--token", "ada")
    laptop.add("Builds are on Fridays", "acme/web")
    with home.process.client() as client:
        authors = {memory.content: memory.metadata.get("author", "") for memory in client.call(List())}
    assert authors == {"I like tabs": "", "Releases are on Tuesdays": "acme", "Builds are on Fridays": "ada"}
    laptop.confirm("mine", "shared", "leave", "acme")
    assert laptop.list_texts() == ["Builds are on Fridays"]


def test_memories_are_shared_into_a_root_and_out_of_it(home: Machine, laptop: Machine) -> None:
    join(home, laptop)
    preference = laptop.add("I like tabs", "acme/api", "preference")
    assert not preference.shared
    with laptop.process.client() as client:
        moved = client.call(Share(ids=[preference.id], to="acme/api"))
        assert (moved.shared, moved.waiting, moved.memories[0].outcome) == ("acme", False, "moved")
        assert home.list_texts() == ["I like tabs"]
        assert client.call(List(tier=["L1", "waiting"])).total == 0
        back = client.call(Share(ids=[moved.memories[0].id[:8]], to="notes"))
        assert (back.shared, back.memories[0].origin) == ("acme", moved.memories[0].id)
    assert home.list_texts() == []
    assert laptop.list_texts("notes") == ["I like tabs"]
    said = laptop.say("share", back.memories[0].id, "--to", "acme/api")
    assert "everybody there who may read acme" in said
