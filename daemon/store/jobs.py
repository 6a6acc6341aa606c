"""The stored state of jobs (paused, failures in a row, start of the last run), and the history of their runs.

For plans, it also reads the state of memories and turns that are targets of steps, and the beginnings of their texts.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apsw
import msgspec

from memoryd.client.protocol import JobRun
from memoryd.daemon.store.history import NUMBER


class JobState(NamedTuple):
    """The stored state of a job; a job that never ran has no row."""

    paused: bool = False
    failures: int = 0  # in a row
    not_before: float | None = None  # back-off
    last_run_at: float | None = None


CUT_OFF = "The daemon ended while it ran."
_FIELDS = ("run", "job", "started_at", "took_ms", "by", "outcome", "error", "operation")
_UPSERT = (
    "INSERT INTO jobs (name, paused, failures, not_before, last_run_at) VALUES (?1, ?2, ?3, ?4, ?5)"
    " ON CONFLICT (name) DO UPDATE SET paused = ?2, failures = ?3, not_before = ?4, last_run_at = ?5"
)


def read_states(connection: apsw.Connection) -> dict[str, JobState]:
    """Return the state of each job."""
    entries: Any = connection.execute("SELECT name, paused, failures, not_before, last_run_at FROM jobs")
    return {name: JobState(bool(paused), *rest) for name, paused, *rest in entries}


def read_state(connection: apsw.Connection, name: str) -> JobState:
    """Return the state of one job."""
    return read_states(connection).get(name, JobState())


def keep(connection: apsw.Connection, name: str, state: JobState) -> None:
    """Store the state of a job."""
    connection.execute(_UPSERT, (name, int(state.paused), *state[1:]))


def wait_with_backup(connection: apsw.Connection, now: float) -> None:
    """Make the job `backup` wait for its interval after a restore, because each new copy replaces an older one.

    Its runs are deleted: they may be from another machine, and none has copied this database.
    """
    connection.execute("DELETE FROM runs WHERE job = 'backup'")
    keep(connection, "backup", JobState(paused=read_state(connection, "backup").paused, last_run_at=now))


def begin(connection: apsw.Connection, job: str, at: float, by: str) -> int:
    """Record the start of a run; return its number."""
    sql = (
        "INSERT INTO runs (job, started_at, took_ms, by, outcome, counts, error)"
        " VALUES (?, ?, 0, ?, 'running', '{}', '') RETURNING id"
    )
    return int(connection.execute(sql, (job, at, by)).get)


def note(connection: apsw.Connection, run: int, counts: dict[str, int], operation: str | None) -> None:
    """Record what a run has done so far, in the same transaction."""
    sql = f"UPDATE runs SET counts = ?, operation = {NUMBER} WHERE id = ?"
    connection.execute(sql, (msgspec.json.encode(counts).decode(), operation, run))


def end(connection: apsw.Connection, run: JobRun) -> JobRun:
    """Record the end of a run; return the run, without its operation if that changed no memory."""
    if run.operation is not None:
        connection.execute("DELETE FROM operations WHERE id = ? AND memories = 0", (run.operation,))
        if connection.changes():
            run.operation = None
    assert run.run is not None
    note(connection, run.run, run.counts, run.operation)
    sql = "UPDATE runs SET took_ms = ?, outcome = ?, error = ? WHERE id = ?"
    connection.execute(sql, (run.took_ms, run.outcome, run.error, run.run))
    return run


def cut_off(connection: apsw.Connection) -> list[JobRun]:
    """Mark the runs that a crash of the daemon interrupted; return them."""
    runs = _read_runs(connection, "outcome = 'running' ORDER BY id", ())
    for run in runs:
        run.outcome, run.error = "interrupted", CUT_OFF
        end(connection, run)
    return runs


def read_latest(connection: apsw.Connection, job: str | None, limit: int) -> list[JobRun]:
    """Return the latest runs of a job, or of all, the latest first."""
    if job is None:
        return _read_runs(connection, "TRUE ORDER BY id DESC LIMIT ?", (limit,))
    return _read_runs(connection, "job = ? ORDER BY id DESC LIMIT ?", (job, limit))


def _read_runs(connection: apsw.Connection, where: str, values: tuple[Any, ...]) -> list[JobRun]:
    columns = f"counts, id AS {', '.join(_FIELDS[:-1])}, (SELECT o.id FROM operations o WHERE o.number = operation)"
    sql = f"SELECT {columns} FROM runs WHERE {where}"
    return [
        JobRun(**dict(zip(_FIELDS, rest, strict=True)), counts=msgspec.json.decode(counts, type=dict[str, int]))
        for counts, *rest in connection.execute(sql, values)
    ]


# Targets of steps ----------------------------------------------------------------------------------------------------

_PREVIEW_CHARS = 100  # of a text

# The fields that decide where a memory belongs; an access changes none of these.
_TARGETS = (
    "SELECT m.id, m.row, m.updated_at, m.type, m.tier, m.importance, m.expires_at, m.pinned, m.superseded_by,"
    " m.text_hash FROM memories m WHERE m.id IN (SELECT value FROM json_each(?))",
    "SELECT t.key, t.id, t.importance, t.source FROM turns t WHERE t.key IN (SELECT value FROM json_each(?))",
)
_BEGINNINGS = (
    f"SELECT id, substr(content, 1, {_PREVIEW_CHARS}) FROM memories WHERE id IN (SELECT value FROM json_each(?))",
    f"SELECT key, substr(content, 1, {_PREVIEW_CHARS}) FROM turns WHERE key IN (SELECT value FROM json_each(?))",
)


def read_targets(connection: apsw.Connection, targets: Iterable[str]) -> dict[str, Any]:
    """Return the state of the targets that are memories or turns; it differs if one of these has changed."""
    return {values[0]: values[1:] for values in _select(connection, _TARGETS, targets)}


def read_previews(connection: apsw.Connection, targets: Iterable[str]) -> dict[str, str]:
    """Return the beginnings of the texts of targets that are memories or turns."""
    return {values[0]: " ".join(values[1].split()) for values in _select(connection, _BEGINNINGS, targets)}


def _select(connection: apsw.Connection, queries: tuple[str, ...], targets: Iterable[str]) -> Iterator[Any]:
    ids = msgspec.json.encode([target for target in targets if " " not in target]).decode()
    for query in queries:
        yield from connection.execute(query, (ids,))
