"""What `unasked.py` makes of a line: where it is from, whether it harms, whether it helps. No daemon is asked."""

from judging import HARMS, JudgedPoint, count_figures, judge_all
from replaying import Injection, Made
from timeline import Harm, MemoryEvent, Prompt, SessionEndEvent, Start, TimelineRow, TurnEvent

from each import each
from memoryd.client.prompt_text import FRAME, make_inert

AT = "2026-05-04T10:00:00Z"
ADVICE = "Never rename a column of the archive. Add a new one and copy."
LONG = "The nightly export writes one file for each harbour, and the last one is the index of all."


def remember(id: str, content: str, namespace: str = "shop/api", **fields: object) -> MemoryEvent:
    return MemoryEvent(**{"id": id, "type": "fact", "content": content, "namespace": namespace, "at": AT, **fields})  # type: ignore[arg-type]


def say(id: str, content: str, role: str = "user", session: str = "s1", **fields: object) -> TurnEvent:
    given = {"id": id, "session": session, "role": role, "content": content, "namespace": "shop/api", "at": AT}
    return TurnEvent(**{**given, **fields})  # type: ignore[arg-type]


def start(id: str = "st1", session: str = "s2", **marks: list[object]) -> Start:
    given: dict[str, object] = {"wanted": [], "helps": [], "harms": [], **marks}
    return Start(id=id, session=session, namespace="shop/api", at=AT, **given)  # type: ignore[arg-type]


def prompt(id: str, content: str = "what now", session: str = "s2", nothing: bool = False, **marks: object) -> Prompt:
    given: dict[str, object] = {"wanted": [], "helps": [], "harms": [], **marks}
    return Prompt(id=id, session=session, namespace="shop/api", at=AT, content=content, nothing=nothing, **given)  # type: ignore[arg-type]


def show(*lines: str) -> str:
    """Return lines as a context has them."""
    marked = "".join(f"- 2026-05-04 [0123abcd, manual] {make_inert(line)}\n" for line in lines)
    return f"memoryd keeps what is said in sessions, here.\n{FRAME[0]}Facts:\n{marked}{FRAME[1]}"


def judge(rows: list[TimelineRow], text: str, point: Start | Prompt | None = None, *made: Made) -> JudgedPoint:
    (judged,) = judge_all(rows, [Injection(point or start(), text, 7, len(rows), list(made))])
    return judged


@each(
    ("line", "refs"),
    [
        (ADVICE.upper(), ["m1"]),
        ("Add a new one and copy", ["m1"]),  # one of its sentences
        (f"As said before. {LONG} That is all.", ["t1"]),
        (f"Asked: and why though? Answer: {ADVICE}", ["m1", "t2"]),
        ("and why though?", ["t2"]),  # too short to be looked for in other texts, and the whole of one
        (f"{ADVICE} And why though?", ["m1"]),
        ("Nobody ever said a word of this.", []),
    ],
)
def test_a_line_is_from_what_has_its_text_or_a_sentence_of_it(line: str, refs: list[str]) -> None:
    rows: list[TimelineRow] = [remember("m1", ADVICE), say("t1", LONG), say("t2", "and why though?")]
    assert judge(rows, show(line)).lines[0].refs == refs


def test_what_the_daemon_made_is_from_the_turns_that_it_names() -> None:
    rows: list[TimelineRow] = [
        say("t1", "I had tea again."),
        say("t2", LONG),
        SessionEndEvent(namespace="shop/api", at=AT, session="s1"),
    ]
    fact = Made("The user drinks tea.", frozenset(["t1"]))
    summary = Made(f"Session s1, 2026-05-04:\nI had tea again.\n{LONG}", frozenset(["summary:s1"]))
    judged = judge(rows, show(fact.content, LONG, summary.content), start(helps=["summary:s1"]), fact, summary)
    assert [line.refs for line in judged.lines] == [["t1"], ["t2"], ["summary:s1", "t2"]]
    assert [line.helps for line in judged.lines] == [False, False, False]
    assert judged.lines[2].harms == ["repeated"]
    cut = judge(rows, show(f"{summary.content[:70]} …"), start(helps=["summary:s1"]), summary).lines[0]
    assert ("summary:s1" in cut.refs, cut.harms) == (True, ["cut"])


def harms_of(rows: list[TimelineRow], line: str, point: Start | Prompt | None = None) -> list[str]:
    return judge(rows, show(line), point).lines[0].harms


def test_what_is_private_comes_up_in_no_project() -> None:
    assert harms_of([remember("m1", ADVICE, "/")], ADVICE) == ["private"]
    assert harms_of([remember("m1", ADVICE, "/", pinned=True)], ADVICE) == []
    assert harms_of([remember("m1", ADVICE, "/", type="preference")], ADVICE) == []


def test_what_is_refuted_or_superseded_by_then_harms() -> None:
    assert harms_of([say("t1", LONG, refuted_by="t2")], LONG) == []
    assert harms_of([say("t1", LONG, refuted_by="t2"), say("t2", "No.")], LONG) == ["refuted"]
    assert harms_of([say("t1", LONG, superseded_by="m1"), remember("m1", ADVICE)], LONG) == ["superseded"]
    rows: list[TimelineRow] = [remember("m1", LONG), remember("m2", ADVICE, supersedes="m1")]
    assert harms_of(rows, LONG) == ["superseded"]
    assert harms_of(rows, f"disagrees with 2026-05-04 [0123abcd, manual] {LONG}") == ["superseded"]
    assert harms_of(rows, ADVICE) == []


def test_a_question_harms_without_its_answer() -> None:
    asked = "Which harbour has the index of all files?"
    rows: list[TimelineRow] = [say("t1", asked, asks=True, answered_by="t2"), say("t2", LONG, role="assistant")]
    assert harms_of(rows, asked) == ["question"]
    assert harms_of(rows, f"Asked: {asked} {LONG}") == []
    assert [line.harms for line in judge(rows, show(asked, LONG)).lines] == [[], []]
    assert harms_of([say("t1", asked, asks=True)], asked) == ["question"]


def test_marks_of_the_data_harm() -> None:
    point = start(harms=[Harm(ref="m1", why="passing"), Harm(ref="m2", why="repeat")], wanted=["m1"])
    rows: list[TimelineRow] = [remember("m1", LONG), remember("m2", ADVICE)]
    judged = judge(rows, show(LONG, ADVICE), point)
    assert [(line.harms, line.helps) for line in judged.lines] == [(["passing"], False), (["repeated"], False)]
    assert judged.there == []


@each(
    ("line", "harms"),
    [
        (LONG, []),
        (LONG.rstrip("."), []),
        ("The nightly export writes one file for each harbour", ["cut"]),
        ("The nightly export writes one file …", ["cut"]),
        ("the last one is the index of all", []),
        (f"{ADVICE} The nightly export writes one file for each harbour", ["cut"]),
        ("wait for it …", []),  # somebody said so
    ],
)
def test_a_line_that_ends_within_a_sentence_is_cut(line: str, harms: list[str]) -> None:
    rows: list[TimelineRow] = [remember("m1", ADVICE), say("t1", LONG), say("t2", "Wait for it …")]
    assert harms_of(rows, line) == harms


def test_what_was_given_before_in_the_session_is_repeated() -> None:
    rows: list[TimelineRow] = [remember("m1", ADVICE)]
    twice = judge(rows, show(ADVICE, f"Mind this. {ADVICE}"))
    assert [line.harms for line in twice.lines] == [[], ["repeated"]]
    points = [start(), prompt("p1", wanted=["m1"]), prompt("p2", session="s3", wanted=["m1"])]
    given = [Injection(point, show(ADVICE), 1, 1, []) for point in points]
    judged = judge_all(rows, given)
    assert [one.lines[0].harms for one in judged] == [[], ["repeated"], []]
    assert [(one.got, one.had) for one in judged] == [(False, False), (False, True), (True, True)]


def test_figures_are_shares_of_lines_of_wanted_things_and_of_prompts() -> None:
    rows: list[TimelineRow] = [
        remember("m1", ADVICE),
        remember("m2", LONG),
        remember("m3", "Harbours close at nine in winter."),
    ]
    points = [
        (start(wanted=["m1", "m2"]), show(ADVICE, "A word that nobody said in here.")),
        (prompt("p1", session="s3", wanted=["m2"]), show(LONG)),
        (prompt("p2", session="s4", wanted=["m2"]), show(f"{LONG[:52]} …")),
        (prompt("p3", nothing=True), ""),
        (prompt("p4", session="s5", nothing=True), show("Harbours close at nine in winter.")),
    ]
    judged = judge_all(rows, [Injection(point, text, 10 * len(text[:1]), 3, []) for point, text in points])
    starts = count_figures([one for one in judged if one.kind == "start"])
    assert (starts.points, starts.lines, starts.tokens) == (1, 2.0, 10.0)
    assert (starts.helping, starts.useless, starts.harmful, starts.wanted) == (0.5, 0.5, 0.0, 0.5)
    assert (starts.got, starts.had, starts.silent) == (None, None, None)
    prompts = count_figures([one for one in judged if one.kind == "prompt"])
    assert (prompts.points, prompts.lines, prompts.tokens) == (4, 0.75, 7.5)
    assert (prompts.helping, prompts.useless, prompts.harmful) == (1 / 3, 1 / 3, 1 / 3)
    assert (prompts.wanted, prompts.got, prompts.had, prompts.silent) == (0.5, 0.5, 0.5, 0.5)
    assert prompts.harms == {**dict.fromkeys(HARMS, 0), "cut": 1}
    nothing = count_figures([])
    assert (nothing.points, nothing.lines, nothing.helping, nothing.silent) == (0, 0.0, None, None)
