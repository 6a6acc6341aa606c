"""Checks of the copies of the database."""

from pathlib import Path
from time import time

from memoryd.client.errors import MemorydError
from memoryd.client.memctl.doctor.patient import Finding, Patient, examine_file, fail, quote_path, report_ok, warn
from memoryd.client.memctl.local import BACKUPS, is_installed
from memoryd.client.memctl.table import count_text, size_text

DAY_S = 86400.0
LATE = 3  # times the interval of the job `backup`
COPY = [["memctl", "backup"]]
SETTING = "set `backups` under [jobs] in the file that `memctl config path` names"


def check_backup(patient: Patient) -> Finding | None:
    """See that what was changed long ago is in a copy of the database."""
    if not patient.settings or not patient.facts:
        return None
    jobs = patient.settings["jobs"]
    every_s = jobs["every_s"].get("backup", DAY_S)
    if not jobs["backups"] or not every_s:
        return warn("no copies of the database are made: `backups` or the job's interval is 0 in [jobs]", SETTING)
    if not (found := patient.copies):
        return _report_missing(patient, every_s)
    age_s = time() - found[-1].stat().st_mtime
    if age_s > LATE * every_s and _file_marks(found[-1]) != patient.facts["marks"]:
        message = f"the latest copy is {age_s / DAY_S:.0f} days old and the database was changed since"
        return warn(message, safe=COPY if patient.status else [["memctl", "up"], *COPY])
    return report_ok(f"{count_text(len(found), 'copy')} of the database")


def _report_missing(patient: Patient, every_s: float) -> Finding:
    assert patient.facts is not None
    since_s = patient.status.uptime_s if patient.status else time() - patient.database.stat().st_mtime
    if patient.facts["marks"] and since_s > every_s + 3600.0:
        return warn("there is no copy of the database", safe=COPY if patient.status else [["memctl", "up"], *COPY])
    return report_ok("there is no copy yet, the job makes one")


def _file_marks(path: Path) -> object:
    try:
        return examine_file(path, check=False)["marks"]
    except MemorydError:
        return None


def check_backup_opens(patient: Patient) -> Finding | None:
    """Open the latest copy and check it."""
    found = patient.copies
    if not found or not is_installed():
        return None
    latest = found[-1]
    aside = f"mv {quote_path(latest)} {quote_path(latest)}.broken; memctl backup"
    try:
        facts = examine_file(latest, check=True)
    except MemorydError as error:
        return fail(f"the latest copy cannot be read: {error.message}", aside)
    if facts["problems"]:
        return fail(f"{latest} is damaged: {facts['problems'][0]}", aside)
    return report_ok(f"{latest.name} opens and holds {count_text(facts['memories'], 'memory')}")


def check_leftovers(patient: Patient) -> Finding | None:
    """Look for copies that were given up half-way."""
    folder = patient.data_dir / BACKUPS
    parts = sorted(folder.glob("*.part")) if folder.is_dir() else []
    old = [path for path in parts if time() - path.stat().st_mtime > DAY_S]
    if old:
        size = size_text(sum(path.stat().st_size for path in old))
        return warn(f"{count_text(len(old), 'unfinished copy')}, {size}", safe=[["rm", "-f", *map(str, old)]])
    return report_ok("nothing was left half-done") if folder.is_dir() else None
