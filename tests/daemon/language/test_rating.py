"""The rules of importance, on sentences of many kinds: what is kept, what is dropped, and what weighs more."""

from hypothesis import given
from hypothesis import strategies as st

from each import each
from memoryd.daemon.language.rating import FEATURES, READ_CHARS, importance

KEPT = {
    # decisions
    "We decided to use Valkey instead of Redis for the session cache.": "decision",
    "Let's go with PostgreSQL 16 for the orders.": "decision",
    "From now on deploys happen on Tuesdays.": "decision",
    "The team agreed on tabs over spaces.": "decision",
    "We are switching from Jenkins to GitHub Actions.": "decision",
    "The old endpoint is deprecated.": "decision",
    "Use Valkey, not Redis": "decision",
    "The budget was approved yesterday.": "decision",
    # rules
    "Never push to main without a review.": "rule",
    "All timestamps must be UTC.": "rule",
    "Always run the linter before a commit.": "rule",
    "Secrets are not allowed in the repository.": "rule",
    "Don't retry on 429; wait a minute.": "rule",
    "Make sure the socket has mode 0600.": "rule",
    "By default the log level is info.": "rule",
    # preferences
    "I prefer dark mode in every editor.": "preference",
    "My favourite tea is oolong.": "preference",
    "I'm allergic to peanuts.": "preference",
    "I really like short functions.": "preference",
    "She hates long meetings.": "preference",
    # who and what belongs to whom
    "My name is Ada.": "personal",
    "I live in Porto with my two cats.": "personal",
    "I'm a backend engineer at a bank.": "personal",
    "My daughter starts school in autumn.": "personal",
    "I bought a tent for the trip.": "personal",
    "I've been learning the cello.": "personal",
    # lessons
    "The root cause was a stale lock file.": "lesson",
    "It turns out the proxy strips the header.": "lesson",
    "The test fails on leap days because the parser adds a month.": "lesson",
    "The fix was to close the pool before forking.": "lesson",
    "The workaround is to pin the tokenizer.": "lesson",
    # plans and dates
    "The release is planned for March 3.": "plan",
    "The deadline for the report is Friday.": "plan",
    "There is a meeting every Monday at 9:30.": "plan",
    "The contract runs until 2027-06-30.": "date",
    "Her birthday is on 12 May.": "date",
    "The outage began yesterday around noon.": "date",
    # numbers, names, code
    "The limit is 500 requests per minute.": "number",
    "The ticket costs $45.": "number",
    "Twelve people signed up.": "number",
    "The config is in /etc/memoryd/config.toml.": "code",
    "Call `store.write(job)` and wait for the future.": "code",
    "The field max_in_flight bounds one connection.": "code",
    "The job parseInvoices runs at night.": "code",
    "See https://example.org/runbook for the steps.": "code",
    "The API of Stripe returns amounts in cents.": "name",
    "The on-call engineer this week is Grace Hopper.": "name",
    # orders that somebody sets
    "Keep functions below twenty-five lines.": "imperative",
    "Wrap every write in a transaction.": "imperative",
}

PLAIN = [
    "The water in the harbour is cold.",
    "Cats sleep most of the time",
    "The office smells of fresh paint.",
    "Ravens remember faces for years.",
    "使用本地缓存比较快。",
]

DROPPED = [
    "haha that's great, thanks so much!",
    "Good morning! How are you today?",
    "ok sounds good, talk to you later",
    "No problem, happy to help!",
    "Sure, let me take a look at that.",
    "You're welcome! Is there anything else?",
    "What is the weather like?",
    "How do I exit this editor?",
    "Can you show me the file again?",
    "Could you please explain that once more?",
    "Please continue.",
    "Tell me a joke",
    "Why is the sky blue?",
    "Is it done yet?",
    "Let me check.",
    "I'll look into it.",
    "Thanks! Can you rewrite it in fewer words?",
    "hm, interesting",
    "the report",
    "Summarize this text",
]


def list_features(text: str) -> list[str]:
    return [feature.name for feature in FEATURES if feature.pattern.search(text)]


@each(("sentence", "feature"), KEPT.items())
def test_what_tells_something_lasting_is_kept_for_its_feature(sentence: str, feature: str) -> None:
    assert feature in list_features(sentence)
    assert importance(sentence) > 0.5


@each("sentence", PLAIN)
def test_a_plain_statement_is_kept_but_no_more_than_that(sentence: str) -> None:
    assert 0.5 <= importance(sentence) <= 0.6


@each("sentence", DROPPED)
def test_small_talk_bare_questions_and_requests_are_not_kept(sentence: str) -> None:
    assert importance(sentence) < 0.5


@each(
    ("more", "less"),
    [
        ("We decided to deploy on Tuesdays at 10:00.", "We deploy on Tuesdays."),
        ("The gateway listens on port 8080.", "Does the gateway listen on port 8080?"),
        ("The port of the gateway is 8080.", "The gateway is fine."),
        ("Use ruff for linting.", "Can you use ruff for linting?"),
        ("My wife is a surgeon in Lyon.", "thanks, you too"),
        ("Never delete the journal, because L0 is rebuilt from it.", "The journal is long."),
    ],
)
def test_a_statement_weighs_more_than_its_question_and_a_fact_more_than_a_remark(more: str, less: str) -> None:
    assert importance(more) > importance(less)


def test_a_question_that_also_tells_something_is_a_statement() -> None:
    told = "Can you suggest a hotel? By the way, I just moved to Lisbon with my sister."
    assert importance(told) > 0.5 > importance("Can you suggest a hotel?")


def test_the_same_feature_counts_once() -> None:
    assert importance("It must be so.") == importance("It must be so, it must, it always must.")


@each("text", ["", "   ", "?!…", "\n\n"])
def test_nothing_said_is_worth_nothing(text: str) -> None:
    assert importance(text) == 0.0


@given(st.text(max_size=400))
def test_importance_is_a_fraction_for_every_text(text: str) -> None:
    assert 0.0 <= importance(text) <= 1.0


@given(st.text(max_size=200))
def test_what_stands_beyond_the_part_that_is_read_changes_nothing(tail: str) -> None:
    head = "The harbour is cold. " * (READ_CHARS // 21 + 1)
    assert importance(head + tail) == importance(head)


def test_every_feature_has_a_weight_and_some_sentence_here() -> None:
    used = {name for sentence in KEPT for name in list_features(sentence)}
    assert used == {feature.name for feature in FEATURES}
    assert all(0 < feature.weight < 0.5 for feature in FEATURES)
