"""Checks of the database and its copies: it is intact and below its limit, and there is a recent copy."""

from pathlib import Path
from time import time
from typing import Any

from memoryd.client.errors import Internal, MemorydError, StorageFailed
from memoryd.client.extras import advise
from memoryd.client.programs.doctor.patient import Finding, Patient, examine_file, fail, quote_path, report_ok, warn
from memoryd.client.programs.memctl.text_table import count_kept, count_text, size_text
from memoryd.client.protocol import Verify
from memoryd.client.rescue import find_damage
from memoryd.client.transport import paths

FULL = 0.8
DAY_S = 86400.0
LATE = 3  # a backup is late after this many intervals of the job `backup`
COPY = [["memctl", "backup"]]
RECOVER = "memctl repair --recover"
SETTING = "set `backups` under [jobs] in the file that `memctl config path` names"


def check_database(patient: Patient) -> Finding | None:
    """Verify the database: through the daemon if one answers, else with SQLite's quick check."""
    if patient.status:
        try:
            verified = patient.client.call(Verify())
        except (StorageFailed, Internal) as error:  # the daemon meets an unreadable page
            return fail(error.message, RECOVER)
        if verified.problems:
            message = "; ".join(verified.problems[:3])
            return fail(message, RECOVER) if find_damage(verified) else fail(message, safe=[["memctl", "repair"]])
        return report_ok(f"verified, {_count_held(patient.facts)}" if patient.facts else "verified")
    if isinstance(patient.examination, MemorydError):
        return fail(f"it cannot be read: {patient.examination.message}", _restore_command(patient))
    facts = patient.facts
    if facts and facts["version"] > facts["known_version"]:
        known = facts["known_version"]
        message = f"the database was written by a newer memoryd (schema {facts['version']}, this one knows {known})"
        return fail(message, f"with the newer memoryd: {advise('daemon')}")
    if facts and facts["problems"]:
        return fail(f"{patient.database} is damaged: {facts['problems'][0]}", RECOVER)
    if facts and patient.copies and not patient.database.stat().st_size:
        return fail(f"{patient.database} has 0 bytes", _restore_command(patient))
    return report_ok(f"opens, {_count_held(facts)}") if facts else None


def _count_held(facts: dict[str, Any]) -> str:
    return count_kept(facts["memories"] - facts["parts"], facts["turns"], facts["parts"])


def _restore_command(patient: Patient) -> str:
    """Return the command that restores the latest copy, or without a copy, the one that recovers readable data."""
    return "memctl restore latest" if patient.copies else RECOVER


def check_size_limit(patient: Patient) -> Finding | None:
    """Compare the size of the database with its limit; at the limit the daemon refuses to add anything."""
    if not patient.status or not patient.status.database_limit_bytes:
        return None
    used, limit = patient.status.database_used_bytes, patient.status.database_limit_bytes
    message = f"{size_text(used)} of {size_text(limit)}"
    fix = f"raise `max_size_mb` under [storage] in {paths.config_path()}, or delete memories: memctl stats"
    if used >= limit:
        return fail(f"{message}: nothing more is added", fix)
    return warn(message, fix) if used > FULL * limit else report_ok(message)


# Copies --------------------------------------------------------------------------------------------------------------


def check_backup(patient: Patient) -> Finding | None:
    """Check that the latest copy of the database opens, and that all but recent changes are in it."""
    if wrong := _check_latest_copy(patient.copies):
        return wrong
    if not patient.settings or not patient.facts:
        return None
    jobs = patient.settings["jobs"]
    every_s = jobs["every_s"].get("backup", DAY_S)
    if not jobs["backups"] or not every_s:
        return warn("no copies of the database are made: `backups` or the job's interval is 0 in [jobs]", SETTING)
    copy = COPY if patient.status else [["memctl", "up"], *COPY]
    if not (found := patient.copies):
        since_s = patient.status.uptime_s if patient.status else time() - patient.database.stat().st_mtime
        if patient.facts["marks"] and since_s > every_s + 3600.0:
            return warn("there is no copy of the database", safe=copy)
        return report_ok("there is no copy yet, the job makes one")
    age_s = time() - found[-1].stat().st_mtime
    if age_s > LATE * every_s and _file_marks(found[-1]) != patient.facts["marks"]:
        message = f"the latest copy is {age_s / DAY_S:.0f} days old and the database was changed since"
        return warn(message, safe=copy)
    return report_ok(f"{count_text(len(found), 'copy')} of the database")


def _file_marks(path: Path) -> object:
    try:
        return examine_file(path, check=False)["marks"]
    except MemorydError:
        return None


def _check_latest_copy(copies: list[Path]) -> Finding | None:
    """Return a finding if the latest copy is damaged."""
    if not copies:
        return None
    latest = copies[-1]
    aside = f"mv {quote_path(latest)} {quote_path(latest)}.broken; memctl backup"
    try:
        problems = examine_file(latest, check=True)["problems"]
    except MemorydError as error:
        return fail(f"the latest copy cannot be read: {error.message}", aside)
    return fail(f"{latest} is damaged: {problems[0]}", aside) if problems else None
