"""The sets of questions whose right answers are known: what is stored, and what is asked about it.

Four kinds, recognised by their content:

- *questions* (LongMemEval): each line has its own sessions: `id`, `type`, `question`, `gold_sessions`, and `sessions`
  of `id`, `date` (`2023/05/20 (Sat) 02:21`) and `turns` (`role`, `content`, `has_answer` on turns with the answer).
  Each question has a namespace of its own. A question with no gold among what is stored is left out.
- *conversations* (LoCoMo; REALTALK and BEAM in its format): `id`, `speakers`, `sessions` (`id`, `date` as `1:56 pm on
  8 May, 2023`, `turns` of `id`, `speaker`, `text`) and `questions` (`id`, `category`, `question`, `gold_turns`). An
  adversarial question is about something that was never said: nothing answers it. One of another category without gold
  is left out.
- *team*: a folder of `memories.jsonl` (`id`, `type`, `created_at`, `content`), `turns.jsonl` (`id`, `session`, `role`,
  `speaker`, `created_at`, `content`) and `questions-HALF.jsonl` (`id`, `question`, `asked_at`, `language`, `category`,
  `gold`, `alternatives`, `context`). An alternative answers a question with one gold item as well; a question with two
  needs both. Finding the `context`, to which the gold item replies, is neither right nor wrong.
- *projects* (`holds`, `tests/data/projects`): of each project the first `SMALL` saved memories that were not replaced,
  and the prompts that need one of them or nothing, each asked as it stands. Finding what only helps, or was saved
  later, is neither right nor wrong.

Files are JSON lines, compressed or not; LongMemEval and LoCoMo are read as they are published (`.json`) too.

A *key* names one thing that was said (a turn, a memory, a session); gold is given in keys.
"""

import gzip
import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from memoryd.client.errors import Invalid
from memoryd.client.protocol import NewMemory, NewTurn

HALVES = ("seen", "unseen")  # of the team's questions
SMALL = 50  # memories of a small store
TURN_S = 30.0  # between two turns where only their session has a date
# What each way of storing does.
WAYS = {
    "session": "one memory per session",
    "turn": "one memory per turn",
    "add": "each turn added",
    "neighbours": "each turn added with neighbours, date and speaker",
    "observe": "each turn observed, sessions ended, consolidated",
    "team": "memories added, sessions observed and ended, consolidated",
    "saved": f"the first {SMALL} saved memories of each project",
}
_ADVERSARIAL = "adversarial"
_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: _ADVERSARIAL}  # of LoCoMo

T = TypeVar("T")


class EvalItem(NamedTuple):
    """A memory to add, or a turn to observe in its session, and the key that gold names it by.

    `said` is its text where it is stored with its speaker in front. What was said in a session stands in order.
    """

    key: Hashable
    what: NewMemory | NewTurn
    session: str = ""
    said: str = ""

    @property
    def text(self) -> str:
        """Its text without the speaker."""
        return self.said or self.what.content


class GoldQuestion(NamedTuple):
    """A question. Each part of `gold` is one right answer: any of its keys gives it. Without gold nothing answers it.

    `at` is when it is asked (UTC seconds), None: at any time. A hit that gives nothing but `neutral` keys is neither
    right nor wrong: it takes no place in the ranking.
    """

    id: str
    type: str
    question: str
    gold: tuple[frozenset[Hashable], ...]
    language: str = ""
    at: float | None = None
    neutral: frozenset[Hashable] = frozenset()


class Material(NamedTuple):
    """What is stored together, in order, and what is asked about it; `dedup`: memories are compared as `add` does."""

    name: str
    way: str
    items: list[EvalItem]
    questions: list[GoldQuestion]
    dedup: bool = True

    @property
    def began_at(self) -> float | None:
        """When the first of it came about, if its questions are asked at a time of their own."""
        if all(asked.at is None for asked in self.questions):
            return None
        return min((item.what.created_at or 0.0 for item in self.items), default=None)


class Session(msgspec.Struct, Generic[T]):
    """One dated conversation, or a part of a long one."""

    id: str
    date: str
    turns: list[T]

    def neighbours(self, number: int, text_of: Callable[[T], str]) -> list[str]:
        """Return the texts of the turns before and after one."""
        return [text_of(self.turns[near]) for near in (number - 1, number + 1) if 0 <= near < len(self.turns)]


def read_material(path: Path, way: str, limit: int | None = None, half: str = HALVES[0]) -> list[Material]:
    """Return what is stored and asked by one way: of the first `limit` questions, and of a half of a team's set."""
    kind = kind_of(path)
    if kind == "team":
        return [_read_team(path, way, limit, half)]
    if kind == "projects":
        return list(_read_projects(path, way, limit))
    made = _read_conversations(path, way, limit) if kind == "conversations" else _read_questions(path, way, limit)
    return list(made)


def kind_of(path: Path) -> str:
    """Return the kind of data that a path holds."""
    if path.is_dir():
        return "team"
    _, first = next(_read_objects(path), (0, {}))
    return "projects" if "kind" in first else "conversations" if "speakers" in first else "questions"


def ways_of(path: Path) -> tuple[str, ...]:
    """Return the ways in which the data of a path can be stored."""
    return {
        "team": ("team",),
        "projects": ("saved",),
        "conversations": ("add", "neighbours", "observe"),
        "questions": ("session", "turn", "observe"),
    }[kind_of(path)]


def read_lines(path: Path, kind: type[T], noun: str) -> Iterator[T]:
    """Yield the objects of a file; raise `Invalid` at one that is not `noun`."""
    for number, one in _read_objects(path):
        try:
            yield msgspec.convert(one, kind)
        except msgspec.ValidationError as error:
            raise Invalid(f"{path}, line {number} is not {noun}: {error}.") from None


def seconds_of(date: str, form: str = "%Y-%m-%dT%H:%M:%SZ") -> float:
    """Return UTC seconds for a date of a form of `strptime`."""
    try:
        return datetime.strptime(date, form).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise Invalid(f"{date!r} is not a date like {datetime(2023, 5, 20, 14, 21):{form}}.") from None


def _read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the numbers and objects of a `.jsonl` or `.jsonl.gz` file, or of a published `.json`, converted."""
    if path.suffix == ".json":
        yield from enumerate(_convert_published(json.loads(path.read_text("utf-8"))), 1)
        return
    number = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, msgspec.json.decode(line, type=dict[str, Any])
    except (gzip.BadGzipFile, EOFError) as error:
        raise Invalid(f"{path} is not a whole gzip file: {error}.") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Invalid(f"{path}, line {number} is not a JSON object: {error}.") from None


# Questions of long chats ---------------------------------------------------------------------------------------------


class ChatMessage(msgspec.Struct):
    """One message of a conversation."""

    role: str
    content: str
    has_answer: bool = False


class Question(msgspec.Struct):
    """A question, the conversations to search, and which of them hold the answer."""

    id: str
    type: str
    question: str
    gold_sessions: list[str]
    sessions: list[Session[ChatMessage]]


def _read_questions(path: Path, way: str, limit: int | None) -> Iterator[Material]:
    for question in islice(read_lines(path, Question, "a question"), limit):
        if way == "observe":
            question.sessions.sort(key=lambda session: _chat_seconds(session.date))
        made = _make_by_session(question) if way == "session" else _make_by_turn(question, way)
        if made.items and made.questions[0].gold:
            yield made


def _make_by_session(question: Question) -> Material:
    """Return one memory per session: what the user said, joined by line ends."""
    items = []
    for session in question.sessions:
        content = "\n".join(turn.content for turn in session.turns if turn.role == "user")
        if content.strip():
            memory = _make_chat_memory(content, session, {"session": session.id})
            items.append(EvalItem((question.id, session.id), memory))
    return _make_asked(question, "session", items, [(question.id, session) for session in question.gold_sessions])


def _make_by_turn(question: Question, way: str) -> Material:
    """Return one memory per turn of either speaker, or the turns to observe."""
    items: list[EvalItem] = []
    gold = []
    for place, session in enumerate(question.sessions):
        for number, turn in enumerate(session.turns):
            if not turn.content.strip():
                continue
            what: NewMemory | NewTurn
            if way == "observe":
                at = _chat_seconds(session.date) + TURN_S * number
                what = NewTurn(role=turn.role, content=turn.content, created_at=at)
            else:  # with its speaker in front: without it, who said a thing is lost and retrieval is 5 points worse
                about = {"session": session.id, "turn": number, "role": turn.role}
                near = session.neighbours(number, lambda turn: turn.content)
                what = _make_chat_memory(f"{turn.role}: {turn.content}", session, about, near)
            key = (question.id, place, number)
            items.append(EvalItem(key, what, session.id, turn.content))
            if turn.has_answer:
                gold.append(key)
    return _make_asked(question, way, items, gold)


def _make_asked(question: Question, way: str, items: list[EvalItem], gold: Sequence[Hashable]) -> Material:
    asked = GoldQuestion(question.id, question.type, question.question, tuple(frozenset([key]) for key in gold))
    return Material(question.id, way, items, [asked], dedup=False)


def _make_chat_memory(
    content: str, session: Session[ChatMessage], about: dict[str, object], neighbours: Sequence[str] = ()
) -> NewMemory:
    return NewMemory(
        content=content,
        type="conversation",
        metadata=about,
        created_at=_chat_seconds(session.date),
        neighbours=list(neighbours),
    )


def _chat_seconds(date: str) -> float:
    """Return UTC seconds for `2023/05/20 (Sat) 02:21`; the day's name is not read, it depends on the language."""
    return seconds_of(re.sub(r" \(\w+\)", "", date), "%Y/%m/%d %H:%M")


# Long conversations --------------------------------------------------------------------------------------------------


class ConversationTurn(msgspec.Struct):
    """What somebody said."""

    id: str
    speaker: str
    text: str

    @property
    def said(self) -> str:
        """Its text after its speaker."""
        return f"{self.speaker}: {self.text}"


class ConversationQuestion(msgspec.Struct):
    """A question and the turns that hold its answer."""

    id: str
    category: str
    question: str
    gold_turns: list[str]


class Conversation(msgspec.Struct):
    """A line of the file."""

    id: str
    speakers: list[str]
    sessions: list[Session[ConversationTurn]]
    questions: list[ConversationQuestion]


def _read_conversations(path: Path, way: str, limit: int | None) -> Iterator[Material]:
    left = limit
    for conversation in read_lines(path, Conversation, "a conversation"):
        asked = []
        for one in conversation.questions:
            gold = () if one.category == _ADVERSARIAL else tuple(frozenset([turn]) for turn in one.gold_turns)
            if gold or one.category == _ADVERSARIAL:
                asked.append(GoldQuestion(one.id, one.category, one.question, gold))
        asked = asked[:left]
        if asked:
            items = [
                EvalItem(turn.id, _make_said(conversation, session, number, way), session.id, turn.text)
                for session in conversation.sessions
                for number, turn in enumerate(session.turns)
                if turn.text.strip()
            ]
            yield Material(conversation.id, way, items, asked)
        left = None if left is None else left - len(asked)


def _make_said(
    conversation: Conversation, session: Session[ConversationTurn], number: int, way: str
) -> NewMemory | NewTurn:
    turn = session.turns[number]
    if way == "add":
        return NewMemory(content=turn.said)
    at = seconds_of(session.date, "%I:%M %p on %d %B, %Y") + TURN_S * number
    if way == "observe":
        role = "user" if turn.speaker == conversation.speakers[0] else "assistant"
        return NewTurn(role=role, content=turn.said, created_at=at)
    return NewMemory(
        content=turn.said,
        type="conversation",
        metadata={"session": session.id, "speaker": turn.speaker},
        created_at=at,
        neighbours=session.neighbours(number, lambda turn: turn.said),
    )


# A team's months -----------------------------------------------------------------------------------------------------


class TeamMemory(msgspec.Struct):
    """What somebody saved on purpose."""

    id: str
    type: str
    created_at: str
    content: str


class TeamTurn(msgspec.Struct):
    """What was said in a session; an agent has no `speaker`."""

    id: str
    session: str
    role: str
    created_at: str
    content: str
    speaker: str = ""


class TeamQuestion(msgspec.Struct):
    """A question and the items that answer it."""

    id: str
    question: str
    asked_at: str
    language: str
    category: str
    gold: list[str]
    alternatives: list[str] = []
    context: list[str] = []


def _read_team(folder: Path, way: str, limit: int | None, half: str) -> Material:
    items = []
    for memory in read_lines(folder / "memories.jsonl", TeamMemory, "a memory"):
        at = seconds_of(memory.created_at)
        items.append(EvalItem(memory.id, NewMemory(content=memory.content, type=memory.type, created_at=at)))
    for turn in read_lines(folder / "turns.jsonl", TeamTurn, "a turn"):
        content = f"{turn.speaker}: {turn.content}" if turn.speaker else turn.content
        said = NewTurn(role=turn.role, content=content, created_at=seconds_of(turn.created_at))
        items.append(EvalItem(turn.id, said, turn.session, turn.content))
    items.sort(key=lambda item: item.what.created_at or 0.0)
    asked = [
        GoldQuestion(
            one.id,
            one.category,
            one.question,
            tuple(frozenset([key, *one.alternatives]) for key in one.gold),
            one.language,
            seconds_of(one.asked_at),
            frozenset(one.context),
        )
        for one in islice(read_lines(folder / f"questions-{half}.jsonl", TeamQuestion, "a question"), limit)
    ]
    return Material(folder.name, way, items, asked)


# Small stores --------------------------------------------------------------------------------------------------------


def _read_projects(path: Path, way: str, limit: int | None) -> Iterator[Material]:
    rows = [row for _, row in _read_objects(path)]
    replaced = {row.get("supersedes") for row in rows}
    for project in (row["name"] for row in rows if row["kind"] == "project"):
        saved = [row for row in rows if row["kind"] == "memory" and row["namespace"] == project]
        stored = [row for row in saved if row["id"] not in replaced][:SMALL]
        items = [
            EvalItem(row["id"], NewMemory(content=row["content"], type=row["type"], importance=row["importance"]))
            for row in stored
        ]
        asked = []
        for session in (row for row in rows if row["kind"] == "session" and row["project"] == project):
            later = {row["id"] for row in stored if row["saved_at"] > session["started_at"]}
            for number, turn in enumerate(session["turns"]):
                gold = tuple(frozenset([id]) for id in turn.get("needs", ()) if any(row["id"] == id for row in stored))
                if turn.get("expects") == "nothing" or gold:
                    neutral = later | {*turn.get("helps", ())}
                    id = f"{session['id']}:{number}"
                    asked.append(GoldQuestion(id, turn["expects"], turn["content"], gold, neutral=frozenset(neutral)))
        yield Material(project, way, items, asked[:limit])


# Sets as they are published ------------------------------------------------------------------------------------------


def _convert_published(published: Sequence[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    is_chat = bool(published) and "haystack_sessions" in published[0]
    return map(_convert_chat if is_chat else _convert_conversation, published)


def _convert_chat(published: dict[str, Any]) -> dict[str, Any]:
    """Return a question of LongMemEval with the sessions that are searched for it."""
    parts = ("haystack_session_ids", "haystack_dates", "haystack_sessions")
    return {
        "id": published["question_id"],
        "type": published["question_type"],
        "question": published["question"],
        "gold_sessions": published["answer_session_ids"],
        "sessions": [
            {"id": id, "date": date, "turns": turns}
            for id, date, turns in zip(*(published[part] for part in parts), strict=True)
        ],
    }


def _convert_conversation(published: dict[str, Any]) -> dict[str, Any]:
    """Return a conversation of LoCoMo with its questions."""
    said, name = published["conversation"], published["sample_id"]
    return {
        "id": name,
        "speakers": [said["speaker_a"], said["speaker_b"]],
        "sessions": [
            {
                "id": f"session_{number}",
                "date": said[f"session_{number}_date_time"],
                "turns": [{"id": turn["dia_id"], "speaker": turn["speaker"], "text": turn["text"]} for turn in turns],
            }
            for number in range(1, len(said))
            if (turns := said.get(f"session_{number}"))
        ],
        "questions": [
            {
                "id": f"{name}-{number}",
                "category": _CATEGORIES[asked["category"]],
                "question": asked["question"],
                "gold_turns": asked.get("evidence", []),
            }
            for number, asked in enumerate(published["qa"])
        ],
    }
