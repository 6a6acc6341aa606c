"""Pass events to one listener, if there is one: changes of memories, runs of jobs, warnings of the log.

Threads: `publish` is called by any, including the writer; the listener must return at once.
"""

import logging
from collections.abc import Callable, Sequence

from memoryd.client.protocol import Event, JobRun
from memoryd.daemon.store.changed_rows import RecordedChange
from memoryd.daemon.store.store import Store

Happening = RecordedChange | Event  # an event of the daemon itself is complete
EventListener = Callable[[Sequence[Happening]], None]

_root = logging.getLogger("memoryd")


class Events:
    """Passes events to a listener. Without one they are dropped."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store, self._clock = store, clock
        self._listener: EventListener | None = None
        self._log = _Log(self)

    def listen(self, listener: EventListener | None) -> None:
        """Set the listener; None removes it."""
        self._listener = listener
        self._store.writer.follower = self._report_changes if listener else None
        (_root.addHandler if listener else _root.removeHandler)(self._log)

    def _report_changes(self, changes: Sequence[RecordedChange]) -> None:
        """Publish the changes of a transaction, with the time of its commit."""
        if (listener := self._listener) is not None:
            now = self._clock()
            listener([change._replace(at=now) for change in changes])

    def publish(self, event: Event) -> None:
        """Publish an event of the daemon itself."""
        if self._listener is not None:
            self._listener([event])

    def report_run(self, run: JobRun) -> None:
        """Publish the end of a run of a job."""
        if self._listener is None:
            return
        counts = ", ".join(f"{name} {number:,}" for name, number in run.counts.items() if number)
        self.publish(
            Event(
                kind="job",
                at=self._clock(),
                by=run.job,
                type=run.outcome,
                operation=run.operation,
                text=f"{counts or run.error or 'nothing to do'} ({run.took_ms:.0f} ms)",
            )
        )

    def report_warning(self, record: logging.LogRecord) -> None:
        """Publish a record of the log as a warning or a notice."""
        part = record.name.removeprefix("memoryd.").removeprefix("daemon.")
        kind = "warning" if record.levelno >= logging.WARNING else "notice"
        self.publish(
            Event(kind=kind, at=self._clock(), by=part, type=record.levelname.lower(), text=record.getMessage())  # type: ignore[arg-type]
        )


class _Log(logging.Handler):
    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        """Publish warnings, and other records with `told` in their `extra`."""
        if record.levelno >= logging.WARNING or getattr(record, "told", False):
            try:
                self._events.report_warning(record)
            except Exception:
                self.handleError(record)
