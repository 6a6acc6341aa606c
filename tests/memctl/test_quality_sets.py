"""Public sets as their authors publish them become lines that `memctl bench eval` reads."""

import json
import sys
from pathlib import Path

from memoryd.client.bench.conversations import BenchConversation
from memoryd.client.bench.kinds import kind_of
from memoryd.client.bench.material import read_lines
from memoryd.client.bench.questions import Question

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from quality import write_lines

CHAT = {
    "question_id": "q1",
    "question_type": "single-session-user",
    "question": "Which tea do I drink?",
    "answer": "green tea",
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_session_ids": ["s1", "s2"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
    "haystack_sessions": [
        [{"role": "user", "content": "I drink green tea", "has_answer": True}],
        [{"role": "user", "content": "It rains"}],
    ],
    "answer_session_ids": ["s1"],
}
CONVERSATION = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ada", "dia_id": "D1:1", "text": "I adopted a cat"}],
        "session_2_date_time": "2:00 pm on 9 May, 2023",
    },
    "qa": [{"question": "What did Ada adopt?", "answer": "a cat", "evidence": ["D1:1"], "category": 4}],
}


def test_a_question_of_longmemeval_keeps_its_sessions_and_which_hold_the_answer(tmp_path: Path) -> None:
    (tmp_path / "longmemeval_s.json").write_text(json.dumps([CHAT]))
    lines = write_lines(tmp_path / "longmemeval_s.json", tmp_path)
    assert kind_of(lines) == "questions"
    [question] = read_lines(lines, Question, "a question")
    assert (question.gold_sessions, [session.id for session in question.sessions]) == (["s1"], ["s1", "s2"])
    assert [turn.has_answer for session in question.sessions for turn in session.turns] == [True, False]


def test_a_conversation_of_locomo_keeps_turns_and_questions(tmp_path: Path) -> None:
    (tmp_path / "locomo10.json").write_text(json.dumps([CONVERSATION]))
    lines = write_lines(tmp_path / "locomo10.json", tmp_path)
    assert kind_of(lines) == "conversations"
    [conversation] = read_lines(lines, BenchConversation, "a conversation")
    assert [(turn.id, turn.speaker) for session in conversation.sessions for turn in session.turns] == [("D1:1", "Ada")]
    [question] = conversation.questions
    assert (question.category, question.gold_turns) == ("single-hop", ["D1:1"])


def test_lines_are_taken_as_they_are(tmp_path: Path) -> None:
    assert write_lines(tmp_path / "questions.jsonl.gz", tmp_path) == tmp_path / "questions.jsonl.gz"
