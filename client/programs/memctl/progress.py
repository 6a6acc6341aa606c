"""A progress bar on stderr, shown only on a terminal."""

import sys
import time
from argparse import Namespace
from typing import Self, TypeVar

from memoryd.client.programs.memctl.link import apply_options, client_for
from memoryd.client.programs.memctl.text_table import draw_bar, shorten
from memoryd.client.protocol import Call, Progress

R = TypeVar("R")

SIZE = 30
EVERY_S = 0.1


class ProgressBar:
    """One line that is redrawn during the work and erased at the end."""

    def __init__(self, label: str, total: int = 0) -> None:
        self.label = label
        self.total = total
        self.done = 0
        self.visible = bool(sys.stderr and sys.stderr.isatty())
        self._drawn_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if self.visible and self._drawn_at:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def update(self, done: int, total: int | None = None, label: str | None = None) -> None:
        """Show that `done` of `total` units are finished."""
        self.done = done
        self.total = self.total if total is None else total
        self.label = label or self.label
        now = time.monotonic()
        if self.visible and (now - self._drawn_at >= EVERY_S or done >= self.total):
            self._drawn_at = now
            bar = draw_bar(self.done / self.total if self.total else 0.0, SIZE)
            sys.stderr.write(f"\r\x1b[K{shorten(self.label, 30)} {bar:<{SIZE}} {self.done}/{self.total}")
            sys.stderr.flush()


def send_with_bar(args: Namespace, call: Call[R], label: str, stages: str = "{}", least_s: float = 0.0) -> R:
    """Send one call with a time limit of at least `least_s`, show a bar meanwhile, and return the result.

    `stages` is the bar's label during a stage, with `{}` for the stage's name; if it is empty, `label` stays.
    """
    with client_for(args) as client, ProgressBar(label) as bar:
        client.timeout_s = max(client.timeout_s, least_s)

        def show_progress(event: Progress) -> None:
            bar.update(event.done, event.total, stages.format(event.stage))

        return client.call(apply_options(args, call), show_progress)
