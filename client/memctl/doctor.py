"""doctor: look at everything that can be wrong, and say how to mend it.

Each check is a function in `CHECKS` that returns a finding, or None where it cannot tell; to add one, add a row.
Checks of the daemon's inside are left out while none answers: the check `daemon` says so.
"""

import os
import stat
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

import memoryd
from memoryd.client import paths
from memoryd.client.errors import MemorydError, Unavailable, VersionMismatch
from memoryd.client.memctl.arguments import no_arguments
from memoryd.client.memctl.commands import Command
from memoryd.client.memctl.link import client_for
from memoryd.client.memctl.local import MISSING, installed, output_of
from memoryd.client.memctl.model import API
from memoryd.client.memctl.output import paint, show
from memoryd.client.memctl.service import model_text
from memoryd.client.memctl.table import count, fields, one_line, shorten, size_text
from memoryd.client.protocol import PROTOCOL_VERSION, Status, Verify
from memoryd.client.sync import Client

LOW_BYTES, LITTLE_BYTES = 200_000_000, 1_000_000_000
LOG_TAIL_BYTES = 65536
LOG_LINE = 120
LOG_MARKS = ("level=error", "level=critical", "Traceback")
STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


class Finding(msgspec.Struct):
    """The outcome of one check: what is the matter, and the command that mends it."""

    state: Literal["ok", "warn", "fail"]
    message: str
    fix: str = ""
    name: str = ""


class Patient(msgspec.Struct):
    """What the checks look at; `status` is None while no daemon answers, `error` says why."""

    args: Namespace
    client: Client
    status: Status | None = None
    error: MemorydError | None = None

    @property
    def data_dir(self) -> Path:
        """The folder of the running daemon, else the usual one."""
        return Path(self.status.data_dir) if self.status else paths.data_dir()


def _doctor(args: Namespace) -> int:
    with client_for(args, autostart=False) as client:
        patient = Patient(args, client)
        try:
            patient.status = client.status()
        except MemorydError as error:
            patient.error = error
        findings = [finding for name in CHECKS if (finding := _check(name, patient))]
    show(args, findings, lambda: _text(findings))
    return int(any(finding.state == "fail" for finding in findings))


def _check(name: str, patient: Patient) -> Finding | None:
    try:
        finding = CHECKS[name](patient)
    except OSError as error:
        finding = Finding("fail", f"{error.filename}: {error.strerror}")
    except MemorydError as error:
        finding = Finding("fail", error.message)
    if finding:
        finding.name = name
    return finding


# Checks --------------------------------------------------------------------------------------------------------------


def _installation(patient: Patient) -> Finding:
    if installed():
        return Finding("ok", f"memoryd {memoryd.__version__} with the daemon's packages")
    return Finding("warn", MISSING.split(";")[0], "pip install 'memoryd[daemon]'")


def _configuration(patient: Patient) -> Finding | None:
    path = paths.config_path()
    if not installed():
        return None
    output_of("memoryd.daemon", ["--print-config"])
    return Finding("ok", f"{path}" if path.is_file() else "no file, the defaults hold")


def _socket(patient: Patient) -> Finding | None:
    socket = patient.client.socket_path
    if not socket.exists():
        return None
    folder = socket.parent.stat()
    if loose := _loose(socket, 0o600):
        return loose
    if folder.st_uid != os.getuid() or stat.S_IMODE(folder.st_mode) & 0o077:
        told = f"others may enter {socket.parent}; only the socket itself is private"
        return Finding("warn", told, "choose a socket in a folder of its own with MEMORYD_SOCKET")
    return Finding("ok", f"{socket}, private to you")


def _daemon(patient: Patient) -> Finding:
    if patient.status:
        return Finding("ok", f"answers, pid {patient.status.pid}")
    if isinstance(patient.error, Unavailable):
        return Finding("fail", f"no daemon answers at {patient.client.socket_path}", "memctl up")
    return Finding("fail", patient.error.message if patient.error else "unknown", "memctl down; memctl up")


def _version(patient: Patient) -> Finding | None:
    if isinstance(patient.error, VersionMismatch):
        return Finding("fail", patient.error.message, "memctl down; memctl up")
    if not patient.status:
        return None
    status = patient.status
    if status.protocol != PROTOCOL_VERSION:
        told = f"the daemon speaks protocol {status.protocol}, memctl {PROTOCOL_VERSION}"
        return Finding("fail", told, "memctl down; memctl up")
    if status.version != memoryd.__version__:
        told = f"the daemon is memoryd {status.version}, memctl is {memoryd.__version__}"
        return Finding("warn", told, "memctl down; memctl up")
    return Finding("ok", f"daemon and memctl are {status.version}, protocol {status.protocol}")


def _data(patient: Patient) -> Finding | None:
    folder = patient.data_dir
    if not folder.exists():
        return None
    files = sorted(path for path in folder.iterdir() if path.is_file())
    loose = next((found for path in files if (found := _loose(path, 0o600))), None)
    return _loose(folder, 0o700) or loose or Finding("ok", f"{folder}, private to you")


def _model(patient: Patient) -> Finding | None:
    if not patient.status:
        return None
    model = patient.status.model
    if model.state == "ready" and model.error and model.name.startswith(API):
        return Finding("warn", model_text(model), "look at [embedding_api]: memctl config show")
    if model.state == "ready":
        return Finding("ok", model_text(model))
    if model.state in ("fetching", "loading"):
        return Finding("warn", f"{model_text(model)}: searches go by words until it is ready", "memctl up --wait")
    fix = f"memctl model pull {model.name}" if model.name else "memctl model list"
    if model.name.startswith(API):
        fix = "look at [embedding_api]: memctl config show"
    return Finding("fail", f"{model_text(model)}: searches go by words only", fix)


def _embedding_key(patient: Patient) -> Finding | None:
    """Look for the key of a model behind an API; one on this machine needs none."""
    if not installed() or (patient.status and not patient.status.model.name.startswith(API)):
        return None
    settings = msgspec.json.decode(output_of("memoryd.daemon", ["--print-config"]))
    name = patient.status.model.name if patient.status else settings["model"]["name"]
    api = settings["embedding_api"]
    if not name.startswith(API) or urlsplit(api["url"]).hostname in ("127.0.0.1", "localhost", "::1"):
        return None
    if api["key_file"]:
        readable = os.access(Path(api["key_file"]).expanduser(), os.R_OK)
        told = f"the key is in {api['key_file']}"
        return (
            Finding("ok", told) if readable else Finding("fail", f"{told}, which cannot be read", "memctl config show")
        )
    if os.environ.get(api["key_env"]):
        return Finding("ok", f"the key is in ${api['key_env']}; the daemon must have been started with it")
    told = f"there is no key for {api['url']}: neither `key_file` in [embedding_api] nor ${api['key_env']} here"
    return Finding("warn", told, f"set `key_file` in {paths.config_path()}, then: memctl down; memctl up")


def _embeddings(patient: Patient) -> Finding | None:
    if not patient.status:
        return None
    pending = patient.status.pending_embeddings
    if pending:
        waiting = f"{count(pending, 'memory')} without a vector yet: found by words only"
        return Finding("warn", waiting, "memctl up --wait")
    return Finding("ok", f"{count(patient.status.memories, 'memory')}, none waits for its vector")


def _database(patient: Patient) -> Finding | None:
    if not patient.status:
        return None
    verified = patient.client.call(Verify())
    if verified.problems:
        return Finding("fail", "; ".join(verified.problems[:3]), "memctl down; memctl up (it repairs what is derived)")
    return Finding("ok", f"verified, {count(verified.memories, 'memory')}")


def _jobs(patient: Patient) -> Finding | None:
    if not patient.status:
        return None
    jobs = patient.client.jobs().jobs
    for job in jobs:
        if job.failures:
            reason = f": {one_line(job.last.error)}" if job.last else ""
            told = f"{job.name} failed {count(job.failures, 'time')} in a row{shorten(reason, LOG_LINE)}"
            held = job.state == "quarantined"
            return Finding("fail" if held else "warn", told, f"memctl jobs resume {job.name}" if held else "")
    paused = ", ".join(job.name for job in jobs if job.state == "paused")
    return Finding("ok", f"{paused} paused, the others in order" if paused else f"{count(len(jobs), 'job')} in order")


def _disk(patient: Patient) -> Finding:
    folder = next(path for path in (patient.data_dir, *patient.data_dir.parents) if path.exists())
    space = os.statvfs(folder)
    free = space.f_bavail * space.f_frsize
    state: Literal["ok", "warn", "fail"] = "fail" if free < LOW_BYTES else "warn" if free < LITTLE_BYTES else "ok"
    return Finding(state, f"{size_text(free)} free", "" if state == "ok" else f"free space on the disk of {folder}")


def _log(patient: Patient) -> Finding | None:
    log = patient.data_dir / "memoryd.log"
    if not log.is_file():
        return None
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    errors = [line for line in lines if any(mark in line for mark in LOG_MARKS)]
    if errors:
        return Finding("warn", f"last error: {shorten(one_line(errors[-1]), LOG_LINE)}", f"less +G {log}")
    return Finding("ok", f"no errors lately in {log}")


def _loose(path: Path, mode: int) -> Finding | None:
    """Return a finding when a file belongs to someone else or others may touch it."""
    status = path.stat()
    if status.st_uid != os.getuid():
        return Finding("fail", f"{path} belongs to another user", f"sudo chown {os.getuid()} {path}")
    found = stat.S_IMODE(status.st_mode)
    if found & ~mode & 0o077:
        return Finding("fail", f"{path} has mode {found:04o}: others may get at it", f"chmod {mode:04o} {path}")
    return None


CHECKS: dict[str, Callable[[Patient], Finding | None]] = {
    "installation": _installation,
    "configuration": _configuration,
    "daemon": _daemon,
    "version": _version,
    "socket": _socket,
    "data": _data,
    "disk": _disk,
    "model": _model,
    "embedding key": _embedding_key,
    "embeddings": _embeddings,
    "database": _database,
    "jobs": _jobs,
    "log": _log,
}


def _text(findings: list[Finding]) -> str:
    rows = [
        (finding.name, f"{paint(f'{finding.state:<4}', STYLES[finding.state])}  {finding.message}")
        for finding in findings
    ]
    lines = fields(rows, indent="").splitlines()
    indent = " " * (2 + max(len(finding.name) for finding in findings) + 6)
    for at in range(len(findings) - 1, -1, -1):
        if findings[at].fix:
            lines.insert(at + 1, f"{indent}mend it: {paint(findings[at].fix, 'cyan')}")
    wrong = sum(finding.state == "fail" for finding in findings)
    return "\n".join([*lines, "", f"{count(wrong, 'problem')}." if wrong else "All is well."])


COMMANDS = {"doctor": Command(no_arguments, _doctor, "  memctl doctor\n  memctl doctor --json")}
