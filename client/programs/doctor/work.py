"""Checks of what the daemon looks after: jobs, tokens, workspaces and shared roots."""

from pathlib import Path
from time import time

from memoryd.client.errors import MemorydError
from memoryd.client.programs.doctor.patient import Finding, Patient, fail, quote_path, report_ok, warn
from memoryd.client.programs.memctl.joining import ask_greeting
from memoryd.client.programs.memctl.text_table import count_text, shorten, to_one_line
from memoryd.client.protocol import GetShared, Job, ListTokens
from memoryd.client.protocol.workspaces import Workspace, Workspaces

REASON_CHARS = 120
LATE_S = 3600.0
UNUSED_DAYS = 90
WATCHED = 0.8  # the share of the system's limit above which the check warns
WATCH_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")


def check_jobs(patient: Patient) -> Finding | None:
    """Look for jobs that fail, that are suspended after too many failures, and that are long overdue."""
    if not patient.status:
        return None
    found = patient.client.jobs()
    failing = [job for job in found.jobs if job.failures]
    held = [job for job in failing if job.state == "quarantined"]
    if held:
        return fail(_failure_text(held), safe=[["memctl", "jobs", "resume", job.name] for job in held])
    if failing:
        return warn(_failure_text(failing), f"memctl jobs list {failing[0].name}")
    if patient.settings and not patient.settings["jobs"]["enabled"]:
        fix = "set `enabled = true` under [jobs] in the file that `memctl config path` names"
        return warn("no job runs by itself: `enabled` is false in [jobs]", fix)
    waiting = [job for job in found.jobs if job.state == "waiting" and job.next_run_at]
    late = [job for job in waiting if found.at - (job.next_run_at or found.at) > max(LATE_S, job.every_s)]
    if late and patient.status.uptime_s > LATE_S:
        message = f"{', '.join(job.name for job in late)} should have run long ago"
        return warn(message, safe=[["memctl", "jobs", "run", job.name] for job in late])
    paused = ", ".join(job.name for job in found.jobs if job.state == "paused")
    number = count_text(len(found.jobs), "job")
    return report_ok(f"{paused} paused, the others in order" if paused else f"{number} in order")


def _failure_text(jobs: list[Job]) -> str:
    first = jobs[0]
    reason = f": {to_one_line(first.last.error)}" if first.last else ""
    more = f" (and {len(jobs) - 1} more)" if len(jobs) > 1 else ""
    return f"{first.name} failed {count_text(first.failures, 'time')} in a row{shorten(reason, REASON_CHARS)}{more}"


def check_tokens(patient: Patient) -> Finding | None:
    """Check that tokens are required (without that, a caller with no token is the owner), and which are unused."""
    tokens = patient.client.call(ListTokens()).tokens if patient.status else []
    if not tokens:
        return None
    if patient.settings and not patient.settings["access"]["require_token"]:
        fix = "set `require_token = true` under [access] in the file that `memctl config path` names"
        return warn("agents have tokens, and whoever presents none may do everything", fix)
    before = time() - UNUSED_DAYS * 86400
    unused = [token.name for token in tokens if (token.last_used_at or token.created_at) < before]
    if unused:
        message = f"{', '.join(unused[:5])}: not used for {UNUSED_DAYS} days"
        return warn(message, f"memctl token revoke {unused[0]}")
    return report_ok(f"{count_text(len(tokens), 'token')}, none idle for {UNUSED_DAYS} days")


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


def check_roots(patient: Patient) -> Finding | None:
    """Check that the server of each root answers, accepts this machine's token and refused no change."""
    shared = patient.client.call(GetShared()) if patient.status else None
    if not shared or not shared.roots:
        return None
    sections = (patient.settings or {}).get("shared", {})
    for root in shared.roots:
        if root.state == "here" or root.name not in sections:
            continue
        own = sections[root.name]
        try:
            greeting = ask_greeting(root.name, own)
        except MemorydError as error:
            return fail(error.message.rstrip("."), f"memctl shared join {root.name} --dry-run")
        if greeting.namespace != root.name:
            message = f"{root.name}: the token {greeting.name} there is for {greeting.namespace}"
            return fail(message, f"memctl shared join {root.name} --token TOKEN")
        if greeting.repositories != own["repositories"]:
            message = f"{root.name} is for other repositories now: {', '.join(greeting.repositories)}"
            return warn(message, f"memctl shared join {root.name} --dry-run")
    if refused := [save for save in shared.waiting if save.refused]:
        return warn(f"{count_text(len(refused), 'save')} refused: {refused[0].refused}", "memctl shared waiting")
    if unreadable := [root.name for root in shared.roots if root.unreadable]:
        return warn(f"rows of {', '.join(unreadable)} that cannot be read were left out", "memctl shared status")
    return report_ok(f"{count_text(len(shared.roots), 'root')}: {', '.join(root.name for root in shared.roots)}")
