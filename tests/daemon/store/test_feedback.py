"""What votes on a memory come to: bounded, one for each caller, one's word before what one cited."""

from hypothesis import given
from hypothesis import strategies as some

from memoryd.client.protocol import Vote
from memoryd.daemon.store import feedback
from memoryd.daemon.store.feedback import decode_votes, factor, note_citation, note_vote, rate_usefulness, text

VOTES = some.lists(
    some.builds(
        Vote,
        by=some.sampled_from(["a", "b", "c", "d", "e"]),
        useful=some.sampled_from([True, False, None]),
        at=some.floats(0, 1e9),
        cited=some.lists(some.sampled_from(["s", "t"]), unique=True, max_size=feedback.MAX_CITATIONS),
    ),
    max_size=100,
    unique_by=lambda vote: vote.by,
)


def test_one_vote_is_a_twentieth_and_many_come_close_to_the_bound() -> None:
    # 2a / (a + b) of 2 and 1 is 4/3: 1 + 0.15/3. Of 1 and 2 it is 2/3.
    assert factor(note_vote("", "a", True, "", 1.0)) == 1.05
    assert factor(note_vote("", "a", False, "", 1.0)) == 0.95
    many = text(Vote(by=f"{number}", useful=True, at=1.0) for number in range(64))
    assert 1.14 < factor(many) < 1.15


def test_what_a_caller_said_last_counts_and_only_that() -> None:
    column = ""
    for at in range(20):
        column = note_vote(column, "a", True, "again", float(at))
    assert factor(column) == 1.05
    column = note_vote(column, "a", False, "no longer", 30.0)
    assert factor(column) == 0.95
    assert decode_votes(column) == [Vote(by="a", useful=False, note="no longer", at=30.0)]
    assert rate_usefulness(column, notes=True) == rate_usefulness(column).__class__(
        factor=0.95, useless=1, notes=["no longer"]
    )


def test_a_citation_counts_half_once_for_each_session_and_two_at_most() -> None:
    column = note_citation("", "a", "s1", 1.0)
    assert column is not None
    # 2 x 1.5 / 2.5 = 1.2
    assert factor(column) == 1.03
    assert note_citation(column, "a", "s1", 2.0) is None
    column = note_citation(column, "a", "s2", 3.0)
    assert column is not None
    assert factor(column) == 1.05
    assert note_citation(column, "a", "s3", 4.0) is None
    assert note_citation(column, "b", "s1", 5.0) is not None


def test_the_oldest_votes_go_when_there_are_too_many() -> None:
    column = ""
    for number in range(feedback.MAX_VOTES + 5):
        column = note_vote(column, f"{number}", True, "", float(number))
    assert [vote.by for vote in decode_votes(column)] == [f"{number}" for number in range(5, feedback.MAX_VOTES + 5)]


@given(VOTES, some.text(max_size=5))
def test_one_more_vote_for_a_memory_never_lowers_it_and_one_against_never_lifts_it(found: list[Vote], by: str) -> None:
    column = text(found)
    assert (
        factor(note_vote(column, by, False, "", 2e9)) <= factor(column) <= factor(note_vote(column, by, True, "", 2e9))
    )
