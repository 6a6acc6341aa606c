"""Handlers of the calls that check, repair and copy the database."""

import time
from collections.abc import Callable
from pathlib import Path

from memoryd.client.errors import Conflict, Invalid, StorageFailed, Unavailable
from memoryd.client.protocol import BackedUp, Backup, Progress, Verification, Verify
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import reading
from memoryd.daemon.registry import Parts, ReportProgress, handles
from memoryd.daemon.store import copies

_TELL_EVERY_S = 0.1


@handles(Verify)
def verify(core: Core, report: ReportProgress, call: Verify) -> Verification:
    """Check the store; rebuild derived data if asked to."""
    stages = ("checking", "rebuilding", "reading vectors", "checking again") if call.repair else ("checking",)

    def begin(stage: str) -> None:
        report(Progress(stage=stage, done=stages.index(stage), total=len(stages)))

    begin("checking")
    problems = core.store.find_problems()
    repaired = list[str]()
    if call.repair:
        begin("rebuilding")
        core.store.rebuild().result()
        begin("reading vectors")
        core.embedding.rebuild()
        repaired = ["full text rebuilt", "vectors read again"]
        begin("checking again")
        problems = core.store.find_problems()
    pending, memories = core.embedding.count_pending(), reading.count(core)
    return Verification(
        memories=memories,
        pending_embeddings=memories if pending is None else pending,
        problems=problems,
        repaired=repaired,
    )


@handles(Backup)
def backup(core: Core, report: ReportProgress, call: Backup) -> "Parts[BackedUp]":
    """Copy the database to a file and check the copy."""

    def check() -> None:
        if core.background.stopping.is_set():
            raise Unavailable("The daemon is stopping; no copy was made.")

    for _ in copies.hold(core.store):
        check()
        yield
    try:
        return _back_up(core, call.path, check, report)
    finally:
        core.store.copying.release()


def _back_up(core: Core, path: str, check: Callable[[], None], report: ReportProgress) -> BackedUp:
    usual = core.folder / copies.FOLDER
    target = _check_target(core, path, usual)
    began = time.monotonic()
    if target.parent == usual:
        copies.go_past(core.store, usual)
    backup = copies.copy_held(core.store, target, check, _build_reporter(report))
    return BackedUp(
        path=str(target),
        size_bytes=backup.size_bytes,
        memories=backup.memories,
        turns=backup.turns,
        parts=backup.parts,
        operation=backup.operation,
        took_ms=round((time.monotonic() - began) * 1000, 3),
    )


def _check_target(core: Core, path: str, usual: Path) -> Path:
    """Return the path of the file to write; raise if its folder does not exist or has too little room."""
    place = Path(path or usual)
    if not place.is_absolute() or "\0" in path:
        raise Invalid(f"The path {path[:200]!r} of a copy is not absolute.")
    try:
        if not path:
            usual.mkdir(mode=0o700, exist_ok=True)
        beginning = copies.KEPT if place == usual else copies.BY_JOB
        target = place / copies.name_at(core.clock(), beginning) if place.is_dir() else place
        folder = target if path.endswith("/") and target == place else target.parent
        if not folder.is_dir():
            raise Invalid(f"There is no folder {folder} for the copy.")
        if target.exists():
            raise Conflict(f"{target} exists; a copy is never written over. Choose another name.")
        copies.check_room(core.store, target.parent)
    except OSError as error:
        raise StorageFailed(f"The copy {place} cannot be written: {error.strerror}.") from None
    return target


def _build_reporter(report: ReportProgress) -> Callable[[int, int], None]:
    told_at = 0.0

    def report_progress(done: int, total: int) -> None:
        nonlocal told_at
        if time.monotonic() - told_at >= _TELL_EVERY_S:
            told_at = time.monotonic()
            report(Progress(stage="copying", done=done, total=total))

    return report_progress
