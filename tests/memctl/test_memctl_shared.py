"""memctl shared: what it shows, what it asks, what it sends."""

from types import SimpleNamespace
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Memctl

from memoryd.client.memctl.progress import ProgressBar
from memoryd.client.protocol import Done, Memory, RefusedMemory, SharedRoot
from memoryd.client.shared.calls import (
    GetSharing,
    GrantRoot,
    ListConflicts,
    MigratedServer,
    MigrateServer,
    PurgedMemories,
    PurgeShared,
    ResolveConflict,
    ResolvedConflict,
    RootNamespace,
    RootPlan,
    SharedConflict,
    SharedConflicts,
    ShareRoot,
    Sharing,
    UnshareRoot,
)
from memoryd.client.shared.checks import check_shared

ADDRESS = "host=db.example dbname=team user=ann"


def memory(id: str, content: str) -> Memory:
    return Memory(
        id=id * 32, content=content, namespace="acme", type="fact", source="user", tier="L1", importance=0.5,
        created_at=0.0, updated_at=0.0,
    )  # fmt: skip


def plan(**changes: object) -> RootPlan:
    namespaces = [RootNamespace(namespace="acme", going=12, staying=3)]
    given = {"root": "acme", "server": ADDRESS, "namespaces": namespaces, "there": 0, "exists": False, "dry_run": True}
    return RootPlan(**{**given, **changes})  # type: ignore[arg-type]


def test_adding_shows_first_and_sends_what_was_shown(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[ShareRoot] = plan()
    shown = memctl("shared", "add", "acme", "--dsn", ADDRESS, "--dry-run").out
    assert "acme" in shown
    assert "12" in shown
    assert "acme is new there" in shown
    assert memctl("shared", "add", "acme", "--dsn", ADDRESS).code == 2, "nobody could be asked"
    assert all(call.dry_run for call in fake.calls)  # type: ignore[attr-defined]
    done = memctl("shared", "add", "acme", "--dsn", ADDRESS, "--yes")
    assert fake.calls[-1] == ShareRoot(root="acme", server=ADDRESS, namespaces=["acme"])
    assert "Sharing acme" in done.out


def test_adding_shows_the_first_exchange_on_a_terminal(
    memctl: Memctl, fake: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [(40, 2), (10, 0), (0, 0)]

    def report() -> Sharing:
        unread, waiting = left.pop(0)
        state = "starting" if unread else "ready"
        root = SharedRoot(root="acme", server=ADDRESS, state=state, unread=unread, waiting=waiting)  # type: ignore[arg-type]
        return Sharing(machine="laptop", roots=[root])

    shown: list[tuple[int, int | None]] = []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(ProgressBar, "update", lambda bar, done, total: shown.append((done, total)))
    fake.replies |= {ShareRoot: plan(), GetSharing: report}
    assert memctl("shared", "add", "acme", "--dsn", ADDRESS, "--yes").code == 0
    assert shown == [(0, 42), (32, 42), (42, 42)]
    left = [(40, 0)]
    assert memctl("shared", "add", "acme", "--dsn", ADDRESS, "--yes", "--json").code == 0
    assert left == [(40, 0)], "for a program nothing is shown"


def test_status_says_what_waits_and_why(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[GetSharing] = Sharing(machine="", roots=[])
    assert "Nothing is shared" in memctl("shared").out
    refused = [RefusedMemory(id="ab" * 16, reason="too long")]
    root = SharedRoot(
        root="acme", server=ADDRESS, state="offline", error="The server does not answer.", memories=5, waiting=2,
        unread=7, conflicts=1, refused=refused, namespaces=["acme", "acme/api"], machines=["desk (bob)"],
    )  # fmt: skip
    fake.replies[GetSharing] = Sharing(machine="laptop-1a2b3c", roots=[root])
    said = memctl("shared", "status").out
    for part in (
        "offline",
        "does not answer",
        "5 memories",
        "2 changes",
        "up to 7 changes",
        "1 conflict",
        "too long",
        "desk (bob)",
    ):
        assert part in said


def test_conflicts_are_shown_with_both_versions_and_resolved(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[ListConflicts] = SharedConflicts(conflicts=[])
    assert "No memory has two versions" in memctl("shared", "conflicts").out
    one, other = memory("a", "port 80"), memory("b", "port 90")
    conflict = SharedConflict(memory=one, other=other, machine="desk", author="bob")
    fake.replies[ListConflicts] = SharedConflicts(conflicts=[conflict])
    said = memctl("shared", "conflicts").out
    assert "port 80" in said
    assert "port 90  (desk (bob))" in said
    resolved = ResolvedConflict(memory=one, removed=[other.id], operation="7" * 32, redacted={"GitHub token": 1})
    fake.replies[ResolveConflict] = resolved
    told = memctl("shared", "resolve", "aaaa", "--merge", "port 80, not 90")
    assert "memctl undo 77777777`" in told.out
    assert "removed before storing: 1 GitHub token" in told.err
    assert fake.calls[-1] == ResolveConflict(id="aaaa", content="port 80, not 90")
    memctl("shared", "resolve", "aaaa")
    memctl("shared", "resolve", "aaaa", "--both")
    assert fake.calls[-2:] == [ResolveConflict(id="aaaa"), ResolveConflict(id="aaaa", both=True)]


def test_a_purge_asks_and_names_the_copies(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[PurgeShared] = PurgedMemories(ids=["a" * 32], waiting=True, copies=["machine desk (bob)"])
    assert memctl("shared", "purge", "aaaa").code == 2
    assert fake.calls == []
    said = memctl("shared", "purge", "aaaa", "--yes").out
    assert "once it answers" in said
    assert "machine desk (bob)" in said


@pytest.mark.parametrize(("option", "access"), [((), "write"), (("--read",), "read"), (("--revoke",), "none")])
def test_roles_are_let_in(memctl: Memctl, fake: FakeDaemon, option: tuple[str, ...], access: str) -> None:
    fake.replies[GrantRoot] = Done(message="done")
    assert memctl("shared", "grant", "acme", "ann", *option).code == 0
    assert fake.calls == [GrantRoot(root="acme", role="ann", access=access)]  # type: ignore[arg-type]


def test_tables_are_made_and_a_root_is_removed(memctl: Memctl, fake: FakeDaemon) -> None:
    fake.replies[MigrateServer] = MigratedServer(before=0, after=1, dialect="CockroachDB", tested=False)
    assert "not tested" in memctl("shared", "migrate", "--dsn", ADDRESS).out
    fake.replies[UnshareRoot] = Done(message="acme is not shared any more; 3 memories stay here.")
    assert "stay here" in memctl("shared", "remove", "acme").out
    assert fake.calls[-1] == UnshareRoot(root="acme")
    memctl("shared", "remove", "acme", "--drop")
    memctl("shared", "remove", "acme", "--force")
    assert fake.calls[-2:] == [UnshareRoot(root="acme", drop=True), UnshareRoot(root="acme", force=True)]


@pytest.mark.parametrize(
    ("changes", "state", "said"),
    [
        ({"state": "ready"}, "ok", "1 root shared"),
        ({"state": "offline", "waiting": 3}, "warn", "3 changes wait here"),
        ({"state": "refused", "error": "This role may not."}, "fail", "This role may not."),
        ({"state": "old", "error": "It wants a newer one."}, "fail", "newer one"),
        ({"state": "ready", "error": "The server has no vectors."}, "warn", "no vectors"),
        ({"state": "ready", "conflicts": 2}, "warn", "2 memories of acme have two versions"),
        ({"state": "ready", "refused": [RefusedMemory(id="ab" * 16, reason="too long")]}, "warn", "too long"),
    ],
)
def test_doctor_says_what_is_wrong_with_sharing(changes: dict[str, Any], state: str, said: str) -> None:
    root = SharedRoot(**{"root": "acme", "server": ADDRESS, **changes})
    stats = SimpleNamespace(daemon=SimpleNamespace(shared=[root]))
    finding = check_shared(SimpleNamespace(stats=stats))  # type: ignore[arg-type]
    assert finding is not None
    assert finding.state == state
    assert said in finding.message


def test_doctor_says_nothing_where_nothing_is_shared() -> None:
    assert check_shared(SimpleNamespace(stats=SimpleNamespace(daemon=SimpleNamespace(shared=[])))) is None  # type: ignore[arg-type]
