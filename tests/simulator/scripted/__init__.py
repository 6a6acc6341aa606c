"""A year of four agents played to a real daemon, month by month, and what became of three memories."""

from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any

from memoryd.client.memctl.demo.model import CONFIG, prepare_model
from memoryd.client.memctl.output import paint, say
from memoryd.client.memctl.private import run_private_daemon
from memoryd.client.memctl.progress import ProgressBar
from scripted import telling
from scripted.events import Event
from scripted.playing import Player
from scripted.script import DAY_S, Scale, year

SEED = 7
DAYS = 365
BUSY = Scale(days=DAYS, turns=5.0, deeds=1.2)
EVERY_DAYS = 5  # between two runs of the jobs
OWN_JOBS = "[jobs]\nenabled = false\n"  # they are run here, at simulated times
NO_FACTS = "[cognition]\nextract = false\n"  # the stories follow turns, whose place facts would take
SHORT_LIVES = '\n[lifetime]\npreset = "swarm"\n'


def play_year(quiet: bool) -> tuple[dict[str, Any], Path]:
    """Show it; return the figures and the folder that the daemon had."""
    missing = prepare_model()
    start = datetime.fromtimestamp(time(), UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    began = start.timestamp() - DAYS * DAY_S
    with run_private_daemon(config=CONFIG + OWN_JOBS + NO_FACTS + SHORT_LIVES, clock=began) as daemon:
        player = Player(daemon, daemon.clock, model=not missing)
        try:
            events = year(SEED, began, BUSY)
            if not quiet:
                _say_head(events)
            months = _play(player, events, began, quiet)
            told = telling.stories(player, SEED, began, words_only=bool(missing))
        finally:
            player.close()
    if not quiet:
        for story in told:
            say(f"\n{paint(story.heading, 'bold')}")
            for line in story.lines:
                say(f"   {line}")
    figures = {"months": months, "stories": {story.name: story.figures for story in told}}
    return {"model": "words only" if missing else "ready", **figures}, daemon.folder


def _say_head(events: list[Event]) -> None:
    say(paint("A year of four agents in less than a minute", "bold"))
    count = f"{len(events):,} conversations, notes, questions and changes of mind"
    say(f"   {count} are from a script, and so is the time;")
    say("   the daemon is real. L0 holds what was just said, L1 what mattered of it, L2 what was not used")
    say("   for 16 days, in nodes by topic. What did not matter is dropped; what expires, goes 30 days later.\n")
    say(telling.heading())


def _play(player: Player, events: list[Event], began: float, quiet: bool) -> list[dict[str, Any]]:
    """Play all days; tell each month when it is over."""
    months: list[dict[str, Any]] = []
    at = 0
    with ProgressBar("playing the year", DAYS) as progress:
        for day in range(DAYS):
            progress.update(day)
            end = began + (day + 1) * DAY_S
            upto = next((n for n in range(at, len(events)) if events[n].at >= end), len(events))
            player.play(events[at:upto])
            at = upto
            player.go_to(end - 60.0)
            month_ends = datetime.fromtimestamp(end, UTC).day == 1 or day == DAYS - 1
            if day % EVERY_DAYS == 0 or month_ends:
                player.maintain()
            if month_ends:
                months.append(telling.month(player, end - 60.0))
                if not quiet:
                    progress.wipe()
                    say(telling.month_line(months[-1]))
    return months
