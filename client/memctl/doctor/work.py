"""Checks of what the daemon looks after: jobs, workspaces, tokens."""

from pathlib import Path
from time import time

from memoryd.client.memctl.doctor.patient import Finding, Patient, Words, fail, quote_path, report_ok, warn
from memoryd.client.memctl.table import count_text, shorten, to_one_line
from memoryd.client.protocol import GetWorkspace, Job

REASON_CHARS = 120
LATE_S = 3600.0
UNUSED_DAYS = 90
WATCHED = 0.8
WATCH_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")


def check_jobs(patient: Patient) -> Finding | None:
    """Look for jobs that fail, and for those that wait for somebody after failing too often."""
    if not patient.jobs:
        return None
    failing = [job for job in patient.jobs.jobs if job.failures]
    held = [job for job in failing if job.state == "quarantined"]
    if held:
        resume: list[Words] = [["memctl", "jobs", "resume", job.name] for job in held]
        return fail(_failure_text(held), safe=resume)
    if failing:
        return warn(_failure_text(failing), f"memctl jobs history {failing[0].name}")
    paused = ", ".join(job.name for job in patient.jobs.jobs if job.state == "paused")
    number = count_text(len(patient.jobs.jobs), "job")
    return report_ok(f"{paused} paused, the others in order" if paused else f"{number} in order")


def _failure_text(found: list[Job]) -> str:
    first = found[0]
    reason = f": {to_one_line(first.last.error)}" if first.last else ""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{first.name} failed {count_text(first.failures, 'time')} in a row{shorten(reason, REASON_CHARS)}{more}"


def check_overdue(patient: Patient) -> Finding | None:
    """Look for jobs that should have run long ago."""
    if not patient.jobs or not patient.status:
        return None
    if patient.settings and not patient.settings["jobs"]["enabled"]:
        fix = "set `enabled = true` under [jobs] in the file that `memctl config path` names"
        return warn("no job runs by itself: `enabled` is false in [jobs]", fix)
    at, waiting = patient.jobs.at, [job for job in patient.jobs.jobs if job.state == "waiting" and job.next_run_at]
    late = [job for job in waiting if at - (job.next_run_at or at) > max(LATE_S, job.every_s)]
    if late and patient.status.uptime_s > LATE_S:
        message = f"{', '.join(job.name for job in late)} should have run long ago"
        return warn(message, safe=[["memctl", "jobs", "run", job.name] for job in late])
    return report_ok(f"{count_text(len(waiting), 'job')} waiting for their time")


def check_shared(patient: Patient) -> Finding | None:
    """Look for roots whose exchange with their server fails, and for what waits for a person."""
    roots = patient.stats.daemon.shared if patient.stats and patient.stats.daemon else []
    if not roots:
        return None
    for root in roots:
        if root.state in ("refused", "old"):
            return fail(f"{root.root} is not exchanged: {to_one_line(root.error)}", "memctl shared status")
    for root in roots:
        if root.state == "unconfirmed":
            return warn(f"{root.root} is not exchanged: {root.error}", f"memctl shared add {root.root}")
        if root.state == "offline":
            waiting = count_text(root.waiting, "change")
            return warn(f"the server of {root.root} does not answer; {waiting} wait here", "memctl shared status")
        if root.refused:
            reason = shorten(to_one_line(root.refused[0].reason), REASON_CHARS)
            return warn(
                f"{count_text(len(root.refused), 'memory')} of {root.root} stay here: {reason}", "memctl shared"
            )
        if root.conflicts:
            message = f"{count_text(root.conflicts, 'memory')} of {root.root} have two versions"
            return warn(message, "memctl shared conflicts")
        if root.error:
            return warn(f"{root.root}: {to_one_line(root.error)}", "memctl shared migrate")
    return report_ok(f"{count_text(len(roots), 'root')} shared, all is exchanged")


def check_workspaces(patient: Patient) -> Finding | None:
    """Look for workspaces whose folder no longer exists or cannot be read."""
    found = patient.workspaces
    if not found:
        return None
    gone = next((space for space in found if space.watching == "gone" or not Path(space.root).is_dir()), None)
    if gone:
        message = f"the folder of {gone.namespace}, {gone.root}, is not there; what is indexed of it stays"
        return warn(message, f"memctl workspace remove {quote_path(Path(gone.root))}")
    for space in found:
        if problems := patient.client.call(GetWorkspace(workspace=space.root)).problems:
            message = f"{space.namespace}: {problems[0].path}: {problems[0].problem}"
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            return warn(f"{message}{more}", f"memctl workspace status {space.namespace}")
    return report_ok(f"{count_text(len(found), 'workspace')} in order")


def check_watches(patient: Patient) -> Finding | None:
    """Compare the watches of workspaces with what the system allows; without one, a folder is scanned instead."""
    states = [patient.client.call(GetWorkspace(workspace=space.root)) for space in patient.workspaces]
    if not states:
        return None
    try:
        limit = int(WATCH_LIMIT.read_text())
    except (OSError, ValueError):
        limit = 0
    used = sum(state.watches for state in states)
    raised = f"sudo sysctl fs.inotify.max_user_watches={max(524288, 2 * limit)}; memctl up --restart"
    scanned = next((state for state in states if state.workspace.watching == "scanning"), None)
    if scanned:
        space, reason = scanned.workspace, scanned.reason
        message = f"{space.namespace} is scanned every few seconds: {reason or 'it cannot be watched'}"
        look = f"memctl workspace status {quote_path(Path(space.root))}"
        return warn(message, raised if "watch" in reason else look)
    if limit and used > WATCHED * limit:
        return warn(f"{used:,} of {limit:,} watches are in use", raised)
    return report_ok(f"{count_text(used, 'folder')} watched" + (f", {limit:,} are allowed" if limit else ""))


def check_tokens(patient: Patient) -> Finding | None:
    """Look for tokens that nobody uses."""
    if not patient.tokens:
        return None
    before = time() - UNUSED_DAYS * 86400
    unused = [token.name for token in patient.tokens if (token.last_used_at or token.created_at) < before]
    if unused:
        message = f"{', '.join(unused[:5])}: not used for {UNUSED_DAYS} days"
        return warn(message, f"memctl token revoke {unused[0]}")
    return report_ok(f"{count_text(len(patient.tokens), 'token')}, all in use")


def check_tokens_required(patient: Patient) -> Finding | None:
    """See whether tokens mean anything: where none is required, whoever presents none is the owner."""
    if not patient.tokens or not patient.settings:
        return None
    if patient.settings["access"]["require_token"]:
        return report_ok("every connection has to present one")
    return warn(
        "agents have tokens, and whoever presents none may do everything",
        "set `require_token = true` under [access] in the file that `memctl config path` names",
    )
