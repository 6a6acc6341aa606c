"""Checks of workspaces: their folders exist, were indexed without errors, and are watched."""

from pathlib import Path

from memoryd.client.programs.doctor.patient import Finding, Patient, quote_path, report_ok, warn
from memoryd.client.programs.memctl.text_table import count_text
from memoryd.client.protocol.workspaces import Workspace, Workspaces

WATCHED = 0.8  # the share of the system's limit above which the check warns
WATCH_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")


def check_workspaces(patient: Patient) -> Finding | None:
    """Look for workspaces whose folder no longer exists, cannot be read or cannot be watched."""
    found = patient.client.call(Workspaces()).workspaces if patient.status else []
    if not found:
        return None
    gone = next((space for space in found if space.watching == "gone" or not Path(space.root).is_dir()), None)
    if gone:
        message = f"the folder of {gone.namespace}, {gone.root}, is not there; what is indexed of it stays"
        return warn(message, f"memctl workspace remove {quote_path(Path(gone.root))}")
    states = [state for space in found for state in patient.client.call(Workspaces(workspace=space.root))]
    for state in states:
        if problems := state.problems:
            message = f"{state.namespace}: {problems[0].path}: {problems[0].problem}"
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            return warn(f"{message}{more}", f"memctl workspace status {state.namespace}")
    return _check_watches(states) or report_ok(f"{count_text(len(found), 'workspace')} in order")


def _check_watches(states: list[Workspace]) -> Finding | None:
    """Compare the watches of workspaces with the system's limit; folders without a watch are scanned instead."""
    try:
        limit = int(WATCH_LIMIT.read_text())
    except (OSError, ValueError):
        limit = 0
    used = sum(state.watches for state in states)
    raised = f"sudo sysctl fs.inotify.max_user_watches={max(524288, 2 * limit)}; memctl up --restart"
    scanned = next((state for state in states if state.watching == "scanning"), None)
    if scanned:
        reason = scanned.reason
        message = f"{scanned.namespace} is scanned every few seconds: {reason or 'it cannot be watched'}"
        look = f"memctl workspace status {quote_path(Path(scanned.root))}"
        return warn(message, raised if "watch" in reason else look)
    if limit and used > WATCHED * limit:
        return warn(f"{used:,} of {limit:,} watches are in use", raised)
    return None
