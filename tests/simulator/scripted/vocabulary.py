"""What the agents of the scripted year talk about: places, things and their settings, sentences with gaps."""

from collections.abc import Mapping
from typing import NamedTuple


class Place(NamedTuple):
    """A namespace with the things that are talked about there, their settings, and what each may be set to.

    `limit` is a sentence that is said again and again with another number.
    """

    namespace: str
    things: tuple[str, ...]
    settings: Mapping[str, tuple[str, ...]]
    limit: str


_SERVICE = {
    "request timeout": ("10 seconds", "20 seconds", "30 seconds", "60 seconds", "90 seconds"),
    "cache": ("Redis", "Valkey", "Memcached", "a map in memory"),
    "queue": ("RabbitMQ", "NATS", "Kafka", "a table in PostgreSQL"),
    "log format": ("plain text", "JSON", "logfmt"),
    "retry limit": ("2 attempts", "3 attempts", "5 attempts", "8 attempts"),
    "deploy day": ("Monday", "Tuesday", "Wednesday", "Thursday"),
}
_PAGE = {
    "page size": ("20 rows", "24 rows", "50 rows", "100 rows"),
    "image format": ("JPEG", "WebP", "AVIF"),
    "state library": ("Redux", "Zustand", "plain hooks", "signals"),
    "test runner": ("Jest", "Vitest", "Playwright"),
    "bundle limit": ("150 kB", "200 kB", "250 kB", "300 kB"),
}
_BED = {
    "watering": ("every morning", "every second evening", "twice a week", "once a week"),
    "fertiliser": ("nettle brew", "horn meal", "compost", "coffee grounds"),
    "pruning time": ("February", "March", "June", "late August"),
}

PLACES = (
    Place(
        "acme/api/alpha",
        ("invoice service", "payment gateway", "ledger export", "tax table", "webhook sender"),
        _SERVICE,
        "The {thing} takes at most {n}00 requests a minute from one client.",
    ),
    Place(
        "acme/api/beta",
        ("search index", "ranking model", "suggest endpoint", "crawler", "synonym list"),
        _SERVICE,
        "The {thing} answers at most {n}00 queries a second before it queues them.",
    ),
    Place(
        "acme/web/gamma",
        ("checkout page", "product grid", "login form", "image loader", "shopping cart"),
        _PAGE,
        "The {thing} must be drawn within {n}00 milliseconds on a slow phone.",
    ),
    Place(
        "garden",
        ("tomato bed", "rose bed", "apple tree", "compost heap", "greenhouse"),
        _BED,
        "The {thing} needs {n} litres of water in a dry week.",
    ),
)
SHARED = {"acme/api/alpha": "acme/api", "acme/api/beta": "acme/api", "acme/web/gamma": "acme", "garden": ""}

# Sentences. {thing} {setting} {old} {new} {n}: see `script`.
DECISIONS = (
    ("The {setting} of the {thing} is still open, ticket {n} waits for it.",
     "Decided: the {thing} will use {new} as its {setting}, ticket {n} can go on."),
    ("Something about the {thing}: we never wrote down its {setting}. I looked it up for ticket {n}.",
     "From now on the {setting} of the {thing} is {new}, as agreed in ticket {n}."),
)  # fmt: skip
CHANGES = (
    ("With {old} the {thing} does not work any more, the {setting} has to change (ticket {n}).",
     "We switched the {setting} of the {thing} from {old} to {new}, ticket {n}."),
    ("Ticket {n} again: {old} was a mistake as the {setting} of the {thing}.",
     "Agreed, the {thing} no longer has {old} as its {setting}; it is {new} instead."),
)  # fmt: skip
INCIDENTS = (
    ("The {thing} failed at 03:{minute} with {n} errors, I was called out of bed.",
     "The root cause was the {setting} of the {thing}; with {new} it is stable again."),
    ("Since yesterday the {thing} is slower than before, about {n} ms more.",
     "It turns out that the {setting} of the {thing} was {old} by accident; the fix is {new}."),
)  # fmt: skip
PREFERENCES = (
    ("I prefer {new} over {old} whenever it is about the {setting} of the {thing}.",
     "Noted: {new} is the preferred {setting} for the {thing}."),
)  # fmt: skip
QUESTIONS = (
    ("Can you show me the {setting} of the {thing}?", "Let me check the {thing} first."),
    ("What is the {setting} of the {thing} again?", "Shall I look it up?"),
)
SMALL_TALK = (
    ("Good morning!", "Good morning, how can I help?"),
    ("Thanks, that looks great", "You are welcome, anytime."),
    ("ok", "Sure."),
    ("That is all for now, see you tomorrow.", "See you, have a nice evening!"),
)
NOISE = (
    "Traceback (most recent call last):\n  File \"/srv/app/main.py\", line {n}, in run\n    raise error\nTimeoutError",
    "Error: connect ECONNREFUSED 127.0.0.1:{n}",
    "Downloading model.bin:  {minute}% |████▌     | 120/271 [00:04<00:05]",
    "HTTP 503 Service Unavailable",
)  # fmt: skip

# The same words everywhere; they must stay apart all the same.
COMMON = (
    "The insurance requires that every change is reviewed by two people.",
    "Backups are kept for 90 days, then they are deleted.",
    "Whoever is on call writes down what was done, always on the same day.",
)
DONE = "Finished ticket {n}: the {setting} of the {thing} is {new} everywhere."
SUMMARY = "Session on the {thing}: talked about its {setting}, now {new}; {n} messages, nothing left open."
LESSON = "Lesson from ticket {n}: check the {setting} of the {thing} before every release."
RULE = "Rule {n}: nobody changes the {setting} of the {thing} on a Friday."
ASKED = ("Which {setting} does the {thing} have?", "what did we decide about the {setting} of the {thing}")
