"""Three stories that stand in every scripted year, so that the demo can tell them and tests can rely on them.

A decision goes from turn to topic; a note that nobody asks for returns because it was often needed together with
another; a summary expires.
"""

from collections.abc import Iterator

from scripted.events import Ask, Event, Note, Say, Talk

PLACE = "acme/api/alpha"
DAY_S, HOUR_S = 86400.0, 3600.0
TIME_OF_DAY_S = 10.5 * HOUR_S
LAST_DAYS = 3  # from the end of the year: when the last summary is written, so that it has just expired

# A decision. -----------------------------------------------------------------------------------------------------
DECISION_DAY = 9
ASKED = "Sessions of the login service get lost at every restart, we need a store for them that survives."
DECIDED = "Decided: the sessions of the login service are kept in Valkey from now on, because its licence stays open."
DECISION_QUESTION = "where do we keep the login sessions?"
# What is said about it later; it comes to lie beside the decision.
LATER_ON = (
    (23, "Sessions of the login service now survive restarts, Valkey holds about 4000 of them.",
     "Good, so the sessions of the login service stay in Valkey."),
    (51, "Somebody asked why sessions of the login service end after an hour.",
     "It turns out that Valkey drops sessions of the login service after 60 minutes; we set it to 8 hours."),
    (96, "Valkey had no memory left yesterday, sessions of the login service were lost.",
     "The fix is a limit: sessions of the login service may take 2 GB in Valkey."),
    (170, "The login service is moved to new hosts next week, what about its sessions?",
     "Sessions of the login service stay where they are, Valkey is not moved."),
)  # fmt: skip

# Two notes with no word in common, needed together every month, and a question for one of them.
NOTES_DAY = 20
TOGETHER_DAYS = (60, 80, 100, 120, 140)
KNOWN = "Monthly closing stops halfway when the report host runs out of disk space."
FORGOTTEN = "Auditors want a signed archive; the signing key lies in the vault of the finance team."
TOGETHER = (
    "the monthly closing stops halfway, the report host is out of disk space; auditors want a signed archive, "
    "the signing key is in the vault of the finance team"
)
LATER = "why did the monthly closing stop halfway?"

# Summaries, whose time is short.
EXPIRED = "Summary of the week: the release of the login service went well, two people are on leave."
LONG_GONE = "Summary of the day: the staging host was rebooted twice, nobody knows why."
LONG_GONE_DAY = 200


def decision_ids(seed: int) -> tuple[str, str]:
    """Return the ids of the question and of the decision."""
    return _id(seed, "asked"), _id(seed, "decided")


def note_ids(seed: int) -> tuple[str, str]:
    """Return the ids of the note that is asked for and of the forgotten one."""
    return _id(seed, "known"), _id(seed, "forgotten")


def summary_ids(seed: int) -> tuple[str, str]:
    """Return the ids of the summary that has just expired and of the one deleted long ago."""
    return _id(seed, "expired"), _id(seed, "long gone")


def events(seed: int, start: float, days: int) -> Iterator[Event]:
    """Yield the events of the stories that fit into so many days."""
    found = [*_decision(seed), *_together(seed), *_summaries(seed, days)]
    return (event._replace(at=start + event.at) for event in found if event.at < days * DAY_S)


def _decision(seed: int) -> Iterator[Event]:
    asked, decided = decision_ids(seed)
    turns = Say(asked, "user", ASKED), Say(decided, "assistant", DECIDED)
    yield Talk(_at(DECISION_DAY), PLACE, "story", turns)
    for day, question, answer in LATER_ON:
        ids = (_id(seed, f"later on {day} {role}") for role in ("user", "assistant"))
        later = zip(ids, ("user", "assistant"), (question, answer), strict=True)
        yield Talk(_at(day), PLACE, f"story {day}", tuple(Say(*said) for said in later))


def _together(seed: int) -> Iterator[Event]:
    for id, text in zip(note_ids(seed), (KNOWN, FORGOTTEN), strict=True):
        yield Note(_at(NOTES_DAY), PLACE, id, text, "codebase-knowledge")
    for day in TOGETHER_DAYS:
        yield Ask(_at(day), PLACE, "story", TOGETHER, limit=2)


def _summaries(seed: int, days: int) -> Iterator[Event]:
    expired, long_gone = summary_ids(seed)
    yield Note(_at(LONG_GONE_DAY), PLACE, long_gone, LONG_GONE, "fact", "session_summary")
    yield Note(_at(days - LAST_DAYS - 1), PLACE, expired, EXPIRED, "fact", "session_summary")


def _at(day: int) -> float:
    return day * DAY_S + TIME_OF_DAY_S


def _id(seed: int, name: str) -> str:
    from scripted.script import id_of

    return id_of(seed, name)
