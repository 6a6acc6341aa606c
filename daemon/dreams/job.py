"""The nightly job `dream` and the call `dream`, which process workspaces one after the other.

The job reads daily files of past days only, since today's file is still being written.
"""

import logging
from collections.abc import Iterator
from concurrent.futures import Future

from memoryd.client.errors import Invalid, MemorydError, Unavailable
from memoryd.client.protocol import Progress
from memoryd.client.protocol.dreams import Dream, Dreamt
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, StopCheck, Work
from memoryd.daemon.dreams import dreaming, memory_file
from memoryd.daemon.dreams.dreaming import DreamTerms
from memoryd.daemon.registry import ReportProgress, handles
from memoryd.daemon.workspaces import hosts, registry

log = logging.getLogger(__name__)


# The job -------------------------------------------------------------------------------------------------------------


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan a dream for each workspace that may be written and has changed since its last dream."""
    if core.embedding.active is None:
        return
    today = _format_today(core, now)
    for workspace in registry.list_all(core):
        try:
            days = dreaming.list_daily_files(core, workspace, today)
            if (
                not days
                or not registry.is_write_allowed(core, workspace)
                or dreaming.is_dreamt(core, workspace, dreaming.read(core, workspace, today))
            ):
                continue
        except MemorydError as error:
            log.warning("the dream of workspace %s failed: %s", workspace.namespace, error)
            continue
        yield Step("dream", workspace.namespace, f"{len(days)} daily files up to {days[-1][1]}", workspace)


def apply(core: Core, step: Step, check: StopCheck) -> dict[str, int]:
    """Run the dream of one workspace; an error does not stop the others."""
    terms = DreamTerms(before=_format_today(core, core.clock()), report=lambda stage, done, total: check())
    try:
        report = memory_file.dream(core, step.data, terms)
    except Unavailable:
        raise
    except MemorydError as error:
        log.warning("the dream of workspace %s was not run: %s", step.target, error)
        return {"refused": 1}
    if report.outcome == "refused":
        log.warning("workspace %s: %s", step.target, report.problem)
    return {report.outcome: 1}


def _format_today(core: Core, now: float) -> str:
    return f"{dreaming.day_of(core, now):%Y-%m-%d}"


DREAM = Work(plan, alone=apply)


# The call ------------------------------------------------------------------------------------------------------------


def check(call: Dream) -> None:
    """Raise `Invalid` if the options of a call contradict each other."""
    if call.undo and call.place is None:
        raise Invalid("Name the workspace whose dream is to be undone.")
    if call.undo and call.force:
        raise Invalid("An undo takes one dream back and cannot be forced.")
    if call.allow is not None and (call.place is None or call.undo or call.dry_run):
        raise Invalid("A permission is for one workspace; give it alone or with `force`.")


def dream(core: Core, call: Dream, terms: DreamTerms) -> Dreamt:
    """Dream of one workspace, or of all that have daily files."""
    if call.place is None:
        persons = [workspace for workspace in registry.list_all(core) if not hosts.find_host(workspace)]
        chosen = [workspace for workspace in persons if dreaming.list_daily_files(core, workspace)]
        return Dreamt(dreams=memory_file.dream_all(core, chosen, terms, call.dry_run))
    workspace = hosts.check_writable(registry.find(core, call.place))
    if call.allow is not None:
        registry.allow_writing(core, workspace, call.allow)
    if call.undo:
        return Dreamt(dreams=[memory_file.undo(core, workspace, call.dry_run)])
    return Dreamt(dreams=memory_file.dream_all(core, [workspace], terms, call.dry_run))


@handles(Dream)
def begin(core: Core, report: ReportProgress, call: Dream) -> "Future[Dreamt]":
    """Begin to dream; the lane is free again at once."""
    check(call)

    def report_progress(stage: str, done: int, total: int) -> None:
        core.background.check_open()
        report(Progress(stage=stage, done=done, total=total))

    return core.background.run("dream", lambda: dream(core, call, DreamTerms(force=call.force, report=report_progress)))
