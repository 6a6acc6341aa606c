"""Checks of background jobs and of tokens."""

from time import time

from memoryd.client.programs.doctor.patient import Finding, Patient, Texts, fail, report_ok, warn
from memoryd.client.programs.memctl.text_table import count_text, shorten, to_one_line
from memoryd.client.protocol import Job

REASON_CHARS = 120
LATE_S = 3600.0
UNUSED_DAYS = 90


def check_jobs(patient: Patient) -> Finding | None:
    """Look for jobs that fail, that are suspended after too many failures, and that are long overdue."""
    if not patient.jobs or not patient.status:
        return None
    failing = [job for job in patient.jobs.jobs if job.failures]
    held = [job for job in failing if job.state == "quarantined"]
    if held:
        resume: list[Texts] = [["memctl", "jobs", "resume", job.name] for job in held]
        return fail(_failure_text(held), safe=resume)
    if failing:
        return warn(_failure_text(failing), f"memctl jobs list {failing[0].name}")
    if patient.settings and not patient.settings["jobs"]["enabled"]:
        fix = "set `enabled = true` under [jobs] in the file that `memctl config path` names"
        return warn("no job runs by itself: `enabled` is false in [jobs]", fix)
    at, waiting = patient.jobs.at, [job for job in patient.jobs.jobs if job.state == "waiting" and job.next_run_at]
    late = [job for job in waiting if at - (job.next_run_at or at) > max(LATE_S, job.every_s)]
    if late and patient.status.uptime_s > LATE_S:
        message = f"{', '.join(job.name for job in late)} should have run long ago"
        return warn(message, safe=[["memctl", "jobs", "run", job.name] for job in late])
    paused = ", ".join(job.name for job in patient.jobs.jobs if job.state == "paused")
    number = count_text(len(patient.jobs.jobs), "job")
    return report_ok(f"{paused} paused, the others in order" if paused else f"{number} in order")


def _failure_text(jobs: list[Job]) -> str:
    first = jobs[0]
    reason = f": {to_one_line(first.last.error)}" if first.last else ""
    more = f" (and {len(jobs) - 1} more)" if len(jobs) > 1 else ""
    return f"{first.name} failed {count_text(first.failures, 'time')} in a row{shorten(reason, REASON_CHARS)}{more}"


def check_tokens(patient: Patient) -> Finding | None:
    """Check that tokens are required (without that, a caller with no token is the owner), and which are unused."""
    if not patient.tokens:
        return None
    if patient.settings and not patient.settings["access"]["require_token"]:
        fix = "set `require_token = true` under [access] in the file that `memctl config path` names"
        return warn("agents have tokens, and whoever presents none may do everything", fix)
    before = time() - UNUSED_DAYS * 86400
    unused = [token.name for token in patient.tokens if (token.last_used_at or token.created_at) < before]
    if unused:
        message = f"{', '.join(unused[:5])}: not used for {UNUSED_DAYS} days"
        return warn(message, f"memctl token revoke {unused[0]}")
    return report_ok(f"{count_text(len(patient.tokens), 'token')}, none idle for {UNUSED_DAYS} days")
