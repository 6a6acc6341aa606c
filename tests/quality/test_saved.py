"""What `saved.py` makes of texts that agents are told: by hand, and on small sets with a daemon without a model."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import saved_hostile
import saved_projects
from holds import Change, Never, Place, Project, Saved, Session, Turn
from judging import judge_all
from replaying import ReplayPlayer, make_id, play, set_hooks_environment
from saved_changes import Told, count_figures, judge
from temporary import EvaluatedDaemon

from memoryd.daemon.conversations.worker import Worker

OLD = "Payments run through Stripe, cards only for now."
NEW = "Stripe is out, we go to Mollie before the launch."
CASE = Change(
    id="c1",
    label="changes",
    kind="old-value",
    topic="backend",
    language="en",
    said_in="en",
    saved=Saved(type="decision", importance=0.5, saved_at="2026-01-05T09:00:00Z", content=OLD),
    started_at="2026-02-05T09:00:00Z",
    turns=[Turn(role="user", content=f"ok. {NEW}"), Turn(role="assistant", content="I removed the old client.")],
    statement=0,
    question="which payment provider do we use?",
)
ID, SAID = make_id("c1")[:8], make_id("c1:0")[:8]


def tell(*lines: str) -> dict[str, str]:
    return dict.fromkeys(("start", "prompt", "search", "mcp"), "".join(f"- {line}\n" for line in lines))


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], Told()),
        ([f"[{ID}] {OLD}"], Told(old=True, alone=True)),
        ([f"[{ID}] {OLD} Later, 2026-02-05 [{SAID}]: {NEW}"], Told(old=True, beside=True)),
        ([f"[{ID}] {OLD} (later: STRIPE is out, we go …)"], Told(old=True, beside=True)),
        ([f"[{ID}] {OLD}", f"[{SAID}] {NEW}"], Told(old=True, alone=True, apart=True)),
        ([OLD], Told(old=True, alone=True)),  # as a start tells it
        ([f"{OLD} (later, 2026-02-05 [{SAID}]: {NEW})"], Told(old=True, beside=True)),
        ([f"[{ID}] {OLD} newer than {SAID}"], Told(old=True, alone=True)),  # an id says nothing by itself
        ([f"[{SAID}] {NEW}"], Told()),
    ],
)
def test_the_old_alone_or_with_the_later_in_one_line(lines: list[str], told: Told) -> None:
    assert judge(CASE, tell(*lines)).told == dict.fromkeys(("start", "prompt", "search", "mcp"), told)


def test_shares_are_of_all_cases_and_one_way_that_harms_is_enough() -> None:
    beside = judge(CASE, tell(f"[{ID}] {OLD} ({NEW})"))
    harmed = judge(CASE, {**tell(f"[{ID}] {OLD} ({NEW})"), "mcp": f"- [{ID}] {OLD}"})
    ways = count_figures([beside, harmed])["old-value"].ways
    assert (ways["start"]["alone"], ways["start"]["beside"], ways["mcp"]["alone"]) == (0.0, 1.0, 0.5)
    assert (ways["any"]["old"], ways["any"]["alone"], ways["any"]["beside"]) == (1.0, 0.5, 0.5)


# With a daemon -------------------------------------------------------------------------------------------------------


@pytest.fixture
def place(start_daemon: Callable[..., Any], clock: Any, folder: Path) -> Iterator[EvaluatedDaemon]:
    """A daemon whose clock is set, within the environment of hooks."""
    daemon = start_daemon()
    worker = Worker(daemon.core)
    worker.start()
    clock.now = 0.0
    with set_hooks_environment(daemon.socket, folder / "hooks"):
        yield EvaluatedDaemon(daemon.client, lambda seconds: setattr(clock, "now", seconds))
    worker.close()


def at(day: int) -> str:
    return f"2026-05-{day:02}T08:00:00Z"


def remember(id: str, day: int, content: str, **fields: Any) -> Saved:
    made = {"id": id, "namespace": "farm", "type": "rule", "importance": 0.5, "saved_at": at(day), "content": content}
    return Saved(**{**made, **fields})


@pytest.mark.slow
def test_what_sessions_were_told_is_counted_beside_the_extremes(
    place: EvaluatedDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = [Never(id="m2", why="private"), Never(id="m3", why="superseded", by="m4")]
    asks = Turn(role="user", content="prune the plum trees", expects="direct", needs=["m1"])
    thanks = Turn(role="user", content="ok", expects="nothing")
    half: list[Any] = [
        Project(name="farm", about="a farm"),
        remember("m1", 1, "Plum trees are pruned in June only."),
        remember("m2", 1, "The salary of March came on the 28th.", namespace="/", type="fact"),
        remember("m3", 1, "The barn is painted red each spring."),
        remember("m4", 2, "The barn is painted green each spring.", supersedes="m3", saved_by="agent"),
        Session("s1", "farm", at(3), Place(needs=["m1"], never=never), [asks, thanks]),
    ]
    monkeypatch.setattr(saved_projects, "read_half", lambda name, which: half)
    rows = saved_projects.make_rows("seen")
    injections = play(place, rows, {})
    ours = saved_projects.count_figures(judge_all(rows, injections), rows)
    assert (ours.told, ours.late, ours.silent, ours.harms) == (1.0, 0, 1.0, {})
    assert (ours.start_lines, ours.needed) == (2.0, 0.5)
    everything = judge_all(rows, list(saved_projects.tell_everything(rows, injections, place)))
    assert [[line.refs for line in one.lines] for one in everything] == [[["m1"], ["m4"]], [], []]
    silent = [one for one in injections if one.point.id != "s1:start"]
    nothing = saved_projects.count_figures(judge_all(rows, silent), rows)
    assert (nothing.start_lines, nothing.late, nothing.needed) == (0.0, 1, None)


@pytest.mark.slow
def test_a_hostile_save_is_looked_for_in_its_project_and_in_others(place: EvaluatedDaemon, folder: Path) -> None:
    text = "Boats are painted by the cheapest robot of all."
    case = {"id": "h1", "way": "mcp", "project": "kiln/api", "beside": "Boats are painted by hand only.", "text": text}
    case |= {"must_not": ["other-project"], "save": {"content": text, "kind": "preference", "project": "/"}}
    player = ReplayPlayer(place, {}, waits_for_counts=False)
    player.go_to(saved_hostile.BEGAN)
    judged = saved_hostile.Attempt(player, case, ["kiln/api"], folder / "h1").run()
    player.close()
    assert (judged.broken, judged.refused) == ([], "")
    assert judged.happened == ["found elsewhere"]


@pytest.mark.slow
def test_no_hostile_save_does_what_it_must_not() -> None:
    report = saved_hostile.measure_hostile("seen")
    assert [one for one in report["cases"] if one.broken or one.refused] == []
