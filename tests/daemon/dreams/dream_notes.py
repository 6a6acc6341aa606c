"""A workspace of 60 daily files: facts that hold or held, repeats and chatter, and a MEMORY.md that has aged."""

import random
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

DAYS = 60
FIRST = date(2026, 3, 2)


class Story(NamedTuple):
    """What notes say: each subject by its versions, the last of which holds; what never changes; chatter."""

    subjects: list[list[str]]
    lasting: list[str]
    chatter: list[str]


TEAM = Story(
    subjects=[
        ["The standup is at 9:30.", "We moved the standup to 10:00.", "The standup moved again, it is now at 11:15."],
        ["The cache is Redis.", "Decided: we use Valkey instead of Redis for the cache."],
        ["The API timeout is 30 seconds.", "The API timeout is 45 seconds.", "The API timeout is 60 seconds."],
        ["The database runs PostgreSQL 14.", "We upgraded the database to PostgreSQL 16."],
        ["Release 2.0 is due on May 12.", "Correction: release 2.0 is due on May 26, not May 12."],
        ["Maria leads the mobile team.", "Jonas took over the mobile team from Maria."],
        ["Backups run at 02:00.", "Backups now run at 04:30."],
        ["Deploys on Fridays are allowed.", "Deploys on Fridays are not allowed."],
        ["The office is in Berlin.", "The office moved to Leipzig."],
        ["We use Python 3.11.", "We switched from Python 3.11 to Python 3.12."],
    ],
    lasting=[
        "The staging server listens on port 8443.",
        "The production server listens on port 443.",
        "Always run the migrations before a deploy.",
        "Customers prefer invoices as PDF.",
        "The root cause of the March outage was a full disk on db2.",
        "Secrets are stored in Vault under kv/payments.",
        "Lena maintains the billing service.",
        "Omar maintains the search service.",
    ],
    chatter=[
        "Had lunch with Anna, the soup was fine.",
        "Nice weather, worked from the balcony.",
        "Long meeting about the roadmap, nothing decided.",
        "Fixed the flaky login test.",
        "Reviewed 3 pull requests.",
        "Thinking about moving to Kubernetes some day.",
        "Coffee machine is broken again.",
        "Train was late by 20 minutes.",
        "Who has the key to the meeting room?",
        "Spent the afternoon reading logs.",
        "Chatted with Paul about football.",
        "Maybe we should try a new linter.",
    ],
)

GARDEN = Story(  # not looked at while the rules were made
    subjects=[
        ["The greenhouse opens at 7:00.", "The greenhouse now opens at 8:30."],
        ["Seeds are ordered from Bingenheim.", "Seeds are ordered from Sativa instead of Bingenheim."],
        ["The watering interval is 3 days.", "The watering interval is 2 days."],
        ["Ines manages the orchard.", "Tomas took over the orchard from Ines."],
        ["The harvest festival is on September 12.", "The harvest festival was postponed to September 26."],
        ["The pump needs 12 V.", "We replaced the pump, it needs 24 V now."],
        ["Dogs are allowed in the park.", "Dogs are not allowed in the park any more."],
        ["Tickets cost 8 euros.", "Tickets were raised to 10 euros."],
        ["The newsletter goes out on Mondays.", "The newsletter goes out on Thursdays."],
        ["The tool shed code is 4417.", "The tool shed code changed to 9032."],
    ],
    lasting=[
        "Never prune the cherry trees in winter.",
        "The irrigation controller is at 10.20.0.7.",
        "The weather station is at 10.20.0.9.",
        "Rosa keeps the bee hives.",
        "Visitors prefer guided tours on Sundays.",
        "The mildew in bed 4 was caused by overhead watering.",
    ],
    chatter=[
        "Saw a fox near the pond today.",
        "Ran out of tea again.",
        "Talked to the neighbours for an hour.",
        "It rained all afternoon.",
        "Thinking about a second bench.",
        "Tidied the desk.",
        "Could we get a bigger wheelbarrow?",
        "Met 4 school classes this morning.",
    ],
)

SHIP = Story(  # the same; three of its changes showed what the rules lacked
    subjects=[
        ["The ferry leaves at 6:45.", "The ferry departs at 7:10 now."],
        ["Our supplier for rope is Lankhorst.", "We changed the rope supplier from Lankhorst to Marlow."],
        ["The crew is 6 people.", "The crew grew to 8 people."],
        ["Captain of the Aurora is Elsa.", "Elsa retired; Piet is captain of the Aurora now."],
        ["The dry dock appointment is on October 3.", "The dry dock appointment was rescheduled to October 17."],
        ["Radio channel for the harbour is 12.", "The harbour uses radio channel 14 from now on."],
        ["Smoking on deck is permitted.", "Smoking on deck is forbidden."],
        ["Berth fees are 120 euros per week.", "Berth fees are 135 euros per week."],
        ["The logbook is kept in Excel.", "The logbook is no longer kept in Excel, it lives in Notion."],
        ["Fuel is bought in Emden.", "Fuel is bought in Delfzijl."],
    ],
    lasting=[
        "Never leave the bilge pump unattended.",
        "The spare key hangs behind the chart table.",
        "Guests prefer vegetarian food.",
        "The engine overheats when the intake is blocked by weed.",
        "The GPS password is harbour-22.",
        "Marta handles the insurance.",
    ],
    chatter=[
        "Calm sea all day.",
        "Repaired a torn flag.",
        "Dolphins near the bow this morning.",
        "Paul told stories again.",
        "Maybe we need new fenders.",
        "Washed the deck.",
        "Who took the binoculars?",
        "Drank too much coffee.",
    ],
)


class Planted(NamedTuple):
    """What a MEMORY.md is to hold afterwards, and what not: what it never said (`elsewhere`) among that."""

    current: list[str]
    elsewhere: list[str]
    superseded: list[str]
    chatter: list[str]


def plant(root: Path, story: Story, seed: int = 1) -> Planted:
    """Write the files of a workspace."""
    chance = random.Random(seed)
    days: list[list[str]] = [[] for _ in range(DAYS)]
    for versions in story.subjects:
        at = sorted(chance.sample(range(2, DAYS), len(versions) - 1))
        starts = [0, *at]
        for number, (text, start) in enumerate(zip(versions, starts, strict=True)):
            end = (starts[number + 1] if number + 1 < len(starts) else DAYS) - 1
            for day in {start, *(chance.randint(start, end) for _ in range(2))}:
                days[day].append(text)
    for text in story.lasting:
        for day in chance.sample(range(DAYS), 3):
            days[day].append(text)
    for day in days:
        day += chance.sample(story.chatter, 3)
        chance.shuffle(day)
    (root / "memory").mkdir(parents=True, exist_ok=True)
    for number, notes in enumerate(days):
        name = FIRST + timedelta(number)
        lines = [
            f"- {9 + i}:{chance.randrange(10, 60)} {note}" if i % 2 else f"- {note}" for i, note in enumerate(notes)
        ]
        (root / "memory" / f"{name}.md").write_text(f"# {name}\n\n" + "\n".join(lines) + "\n")
    (root / "MEMORY.md").write_text(_memory(story, chance))
    return Planted(
        current=[*(versions[-1] for versions in story.subjects), *story.lasting[:4]],
        elsewhere=story.lasting[4:],
        superseded=[version for versions in story.subjects for version in versions[:-1]],
        chatter=story.chatter,
    )


def _memory(story: Story, chance: random.Random) -> str:
    """Return a MEMORY.md that agents have only ever added to."""
    old = [version for versions in story.subjects for version in versions[:-1]]
    added = [*old, *chance.choices(old, k=len(old)), *story.lasting[:4], *story.lasting[:4]]
    chance.shuffle(added)
    half = len(added) // 2
    listed = ["\n".join(f"- {text}" for text in part) for part in (added[:half], added[half:])]
    table = "| who | what |\n|---|---|\n| all | see below |"
    head = f"# Memory\n\nWhat everybody should know.\n\n{table}\n\n"
    return f"{head}## Facts\n\n{listed[0]}\n\n## More\n\n{listed[1]}\n\n- [ ] read it all\n"
