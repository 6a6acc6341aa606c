"""The job that runs a pass over each workspace, in case watching has missed a change."""

import logging
from collections.abc import Iterator

from memoryd.client.errors import MemorydError, NotFound, Unavailable
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.work import Step, StopCheck, Work
from memoryd.daemon.workspaces import indexing, registry
from memoryd.daemon.workspaces.indexing import Gone

log = logging.getLogger(__name__)


def plan(core: Core, now: float) -> Iterator[Step]:
    """Plan a pass over each workspace."""
    for workspace in registry.list_all(core):
        yield Step("scan", workspace.namespace, f"changes in {workspace.root} may have been missed", workspace)


def scan(core: Core, step: Step, check: StopCheck) -> dict[str, int]:
    """Run a pass over one workspace; an error does not stop the others."""
    try:
        done = indexing.index(core, step.data, report=lambda done, total: check())
    except Gone:
        return {"gone": 1}
    except NotFound:
        return {"skipped": 1}
    except Unavailable:
        raise
    except MemorydError as error:
        log.warning("workspace %s could not be indexed: %s", step.target, error)
        return {"failed": 1}
    return {"indexed": done.indexed, "removed": done.removed, "unchanged": done.unchanged}


SCAN = Work(plan, alone=scan, at_limit=True)  # it checks the size limit itself, for each slice
