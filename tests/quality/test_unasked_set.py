"""The evaluation data in `tests/data/unasked`: valid, and as its README says. Nothing here prints a text of it."""

from collections import Counter
from functools import cache
from itertools import combinations
from pathlib import Path

from timeline import (
    MemoryEvent,
    Point,
    Prompt,
    SessionEndEvent,
    Space,
    Start,
    TimelineEvent,
    TimelineRow,
    TurnEvent,
    read_rows,
)

from each import each

HERE = Path(__file__).parents[1] / "data" / "unasked"
HALVES = ("seen", "unseen")
FILES = (*HALVES, "practice-2")
SHORT = 20  # characters: "thanks" is in both


@cache
def read(name: str) -> list[TimelineRow]:
    return read_rows(HERE / f"{name}.jsonl")


@each("name", FILES)
def test_the_table_of_the_readme_holds(name: str) -> None:
    rows = read(name)
    kinds = Counter(type(row) for row in rows)
    nothing = sum(row.nothing for row in rows if isinstance(row, Prompt))
    sessions = len({(row.namespace, row.session) for row in rows if isinstance(row, TurnEvent)})
    counts = (kinds[Space], kinds[MemoryEvent], kinds[TurnEvent], sessions, kinds[Start], kinds[Prompt], nothing)
    line = f"| `{name}.jsonl` | {len(rows)} | {' | '.join(map(str, counts))} |"
    assert line in (HERE / "README.md").read_text(encoding="utf-8").splitlines()
    assert kinds[SessionEndEvent] == sessions


@each("name", FILES)
def test_times_ids_and_references_fit_together(name: str) -> None:
    rows = read(name)
    events = [row for row in rows if isinstance(row, TimelineEvent)]
    spaces = {row.name for row in rows if isinstance(row, Space)}
    ids = [row.id for row in events if isinstance(row, MemoryEvent | TurnEvent | Point)]
    wrong = [f"{id} is there twice" for id, times in Counter(ids).items() if times > 1]
    known: set[str] = set()
    last = 0.0
    for number, row in enumerate(events):
        name = getattr(row, "id", row.namespace)
        if row.seconds < last:
            wrong.append(f"{name} is before what precedes it")
        last = row.seconds
        if row.namespace not in spaces:
            wrong.append(f"{name} is in an unknown namespace")
        later = (row.refuted_by, row.superseded_by, row.answered_by) if isinstance(row, TurnEvent) else ()
        wrong += [f"{name} names {ref}, which is nowhere" for ref in later if ref and ref not in ids]
        earlier = [row.supersedes] if isinstance(row, MemoryEvent) and row.supersedes else []
        if isinstance(row, Point):
            earlier = [*row.wanted, *row.helps, *(harm.ref for harm in row.harms)]
        wrong += [f"{name} names {ref}, which is not there yet" for ref in earlier if ref not in known]
        if isinstance(row, Prompt):
            following = events[number + 1]
            if not (isinstance(following, TurnEvent) and (following.role, following.content) == ("user", row.content)):
                wrong.append(f"{name} is not followed by its turn")
        known.add(f"summary:{row.session}" if isinstance(row, SessionEndEvent) else name)
    assert wrong == []


@each("name", FILES)
def test_marks_agree_with_what_is_known_of_things(name: str) -> None:
    things: dict[str, MemoryEvent | TurnEvent] = {}
    replaced: set[str | None] = set()
    wrong: list[str] = []
    for row in read(name):
        if isinstance(row, Point):
            good, bad = [*row.wanted, *row.helps], [harm.ref for harm in row.harms]
            wrong += [f"{row.id} names {ref} twice" for ref, times in Counter([*good, *bad]).items() if times > 1]
            for ref in good:
                thing = things.get(ref)
                turn = thing if isinstance(thing, TurnEvent) else None
                is_gone = ref in replaced or (turn and {turn.refuted_by, turn.superseded_by} & things.keys())
                if is_gone or (turn and (turn.request or turn.role == "tool")):
                    wrong.append(f"{row.id} wants {ref}, which harms")
                if thing and thing.namespace not in ("/", row.namespace):
                    wrong.append(f"{row.id} wants {ref} of another project")
        if isinstance(row, Prompt) and row.nothing != (not row.wanted and not row.helps):
            wrong.append(f"{row.id} says by mistake whether it has anything to say")
        if isinstance(row, MemoryEvent | TurnEvent):
            things[row.id] = row
        if isinstance(row, MemoryEvent):
            replaced.add(row.supersedes)
    assert wrong == []


@each("name", FILES)
def test_sessions_come_one_after_the_other(name: str) -> None:
    open_now: str | None = None
    ended: set[str] = set()
    wrong: list[str] = []
    for row in read(name):
        if isinstance(row, SessionEndEvent):
            ended.add(row.session)
            open_now = None
        elif isinstance(row, TurnEvent | Point):
            if row.session in ended or open_now not in (None, row.session):
                wrong.append(row.id)
            open_now = row.session
    assert wrong == []
    assert open_now is None


def test_the_files_share_no_sentence() -> None:
    assert {pair: count_shared(*pair) for pair in combinations(FILES, 2)} == dict.fromkeys(combinations(FILES, 2), 0)
    assert all((HERE / f"{name}.jsonl").stat().st_size < 400_000 for name in FILES)


def count_shared(*names: str) -> int:
    """Return how many texts are in both of two files; what a failure shows must not be the texts."""
    texts = [{row.content for row in read(name) if isinstance(row, MemoryEvent | TurnEvent)} for name in names]
    return sum(len(text) >= SHORT for text in texts[0] & texts[1])
