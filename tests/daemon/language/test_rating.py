"""The rules of importance, on sentences of many kinds: what is kept, what is dropped, and what weighs more."""

from each import each
from memoryd.daemon.language.rating import importance

KEPT = [
    "We decided to use Valkey instead of Redis for the session cache.",
    "Let's go with PostgreSQL 16 for the orders.",
    "From now on deploys happen on Tuesdays.",
    "The team agreed on tabs over spaces.",
    "We are switching from Jenkins to GitHub Actions.",
    "The old endpoint is deprecated.",
    "Use Valkey, not Redis",
    "The budget was approved yesterday.",
    "Never push to main without a review.",
    "All timestamps must be UTC.",
    "Always run the linter before a commit.",
    "Secrets are not allowed in the repository.",
    "Don't retry on 429; wait a minute.",
    "Make sure the socket has mode 0600.",
    "By default the log level is info.",
    "I prefer dark mode in every editor.",
    "My favourite tea is oolong.",
    "I'm allergic to peanuts.",
    "I really like short functions.",
    "She hates long meetings.",
    "My name is Ada.",
    "I live in Porto with my two cats.",
    "I'm a backend engineer at a bank.",
    "My daughter starts school in autumn.",
    "I bought a tent for the trip.",
    "I've been learning the cello.",
    "The root cause was a stale lock file.",
    "It turns out the proxy strips the header.",
    "The test fails on leap days because the parser adds a month.",
    "The fix was to close the pool before forking.",
    "The workaround is to pin the tokenizer.",
    "The release is planned for March 3.",
    "The deadline for the report is Friday.",
    "There is a meeting every Monday at 9:30.",
    "The contract runs until 2027-06-30.",
    "Her birthday is on 12 May.",
    "The outage began yesterday around noon.",
    "The limit is 500 requests per minute.",
    "The ticket costs $45.",
    "The config is in /etc/memoryd/config.toml.",
    "Call `store.write(job)` and wait for the future.",
    "The field max_in_flight bounds one connection.",
    "The job parseInvoices runs at night.",
    "See https://example.org/runbook for the steps.",
    "The API of Stripe returns amounts in cents.",
    "The on-call engineer this week is Grace Hopper.",
]

PLAIN = [
    "The water in the harbour is cold.",
    "Cats sleep most of the time",
    "The office smells of fresh paint.",
    "Ravens remember faces for years.",
    "Wrap every write in a transaction.",
    "Keep functions below twenty-five lines.",
    "Twelve people signed up.",
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


@each("sentence", KEPT)
def test_what_tells_something_lasting_is_kept(sentence: str) -> None:
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
