"""shared status, shared waiting, and what an add says of a shared root."""

from fake_daemon import FakeDaemon, Memctl

from memoryd.client.protocol import (
    Add,
    Added,
    GetShared,
    Hits,
    List,
    NamespaceList,
    Namespaces,
    Page,
    Search,
    Share,
    Shared,
    SharedMemory,
)
from memoryd.client.protocol.shared import RootStatus, SharedStatus, WaitingSave

AWAY = RootStatus(
    name="acme",
    server="ssh://home",
    state="away",
    problem="The place of acme cannot be reached: Connection refused.",
    token="ada",
    role="agent",
    auto="decisions",
    exclude=["acme/hr"],
    waiting=2,
    unreadable=1,
)
SAVE = WaitingSave(
    id="ab" * 16, namespace="acme/api", preview="Releases are on \x1b[31mTuesdays", since=1_800_000_000.0
)


def test_status_shows_each_root_with_what_is_wrong(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[GetShared] = SharedStatus(roots=[AWAY], waiting=[SAVE])
    said = memctl("shared").out
    for part in ("acme", "ssh://home", "away", "Connection refused", "ada (agent)", "acme/hr", "2 saves", "1 row"):
        assert part in said
    assert memctl("shared", "status", "--json").json["roots"][0]["waiting"] == 2
    fake.replies[GetShared] = SharedStatus(roots=[], waiting=[])
    assert "docs/sharing.md" in memctl("shared", "status").out


def test_waiting_lists_saves_and_sends_them_again(memctl: Memctl, fake: FakeDaemon) -> None:
    refused = WaitingSave(
        id="cd" * 16, namespace="acme/api", preview="x", since=0.0, refused="forbidden: it only reads"
    )
    fake.replies[GetShared] = SharedStatus(roots=[AWAY], waiting=[SAVE, refused])
    said = memctl("shared", "waiting", "--send").out
    assert fake.calls[-1] == GetShared(send=True)
    assert "abababab" in said
    assert "only reads" in said
    assert "\x1b[31m" not in said
    assert [save["id"] for save in memctl("shared", "waiting", "--json").json] == ["ab" * 16, "cd" * 16]
    assert fake.calls[-1] == GetShared()


def test_an_add_says_where_it_went(memctl: Memctl, fake: FakeDaemon) -> None:
    added = Added(
        id="ab" * 16, outcome="created", embedded=True, operation="cd" * 16, namespace="acme/api", shared="acme"
    )
    fake.replies[Add] = added
    said = memctl("add", "Releases are on Tuesdays", "--type", "decision", "--namespace", "acme/api").out
    assert "on the machine of the shared root acme" in said
    added.waiting = True
    assert "waits here for the shared root acme" in memctl("add", "Releases", "--namespace", "acme/api").out


def test_what_lies_in_a_root_that_does_not_answer_is_named(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[List] = Page(memories=[], total=0, degraded=["shared:acme"])
    fake.replies[Namespaces] = NamespaceList(namespaces=[], total=0, degraded=["shared:acme"])
    fake.replies[Search] = Hits(hits=[], degraded=["shared:acme", "vector"])
    for words in (("list", "--json"), ("namespaces", "--json"), ("search", "releases", "--json")):
        said = memctl(*words).err
        assert "missing in this answer: the shared root acme, which does not answer" in said, words


def test_a_memory_that_is_shared_says_where_it_is_and_who_reads_it(memctl: Memctl, fake: FakeDaemon) -> None:
    moved = SharedMemory(id="ab" * 16, origin="cd" * 16, outcome="moved")
    shared = Shared(memories=[moved], operation="ef" * 16, shared="acme")
    fake.replies[Share] = shared
    assert "everybody there who may read acme" in memctl("share", "cdcd", "--to", "acme/api").out
    assert "in acme they are deleted" in memctl("share", "cdcd", "--to", "notes").out
    shared.waiting = True
    assert "wait here until the machine of acme answers" in memctl("share", "cdcd", "--to", "acme/api").out
