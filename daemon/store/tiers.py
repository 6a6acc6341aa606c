"""The table of tiers, in which turns and memories are kept, the hottest first.

To add a tier: a row here, its name in `client/protocol` (`Tier`, `TierName`), and a job or call that fills it.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from memoryd.daemon.config import TiersConfig

L0: Final = "L0"
HOT: Final = "hot"
L1: Final = "L1"
L2: Final = "L2"
DOCUMENTS: Final = "documents"
WAITING: Final = "waiting"
L3: Final = "L3"

HOT_ROWS = 20
REGISTRY_HALF_LIFE_DAYS = 30.0  # of recency in L2


class TierSpec(NamedTuple):
    """A tier: its name for people, what it counts, what enters and leaves it, where that goes, and its limit.

    `limit` is per namespace, 0 for none. `half_life_days` is that of recency in its ranking, 0 if nothing decays.
    `stage` is the stage of a search that reads the tier; if it is empty, searches return nothing from the tier, and an
    `add` is not merged into it.
    """

    title: str
    enters: str
    leaves: str
    stage: str
    unit: str = "memory"
    to: str = ""
    limit: Callable[[TiersConfig], int] = lambda settings: 0
    half_life_days: Callable[[TiersConfig], float] = lambda settings: 0.0


TIERS: dict[str, TierSpec] = {
    L0: TierSpec(
        title="L0 active",
        unit="turn",
        enters="turns that were observed",
        leaves="the oldest when it is full, all of a namespace that was quiet for long",
        to=L1,
        limit=lambda settings: settings.ring,
        stage="active",
    ),
    HOT: TierSpec(
        title="hot buffer",
        enters="memories that searches returned, which stay where they are",
        leaves="the least recently used when it is full",
        limit=lambda settings: HOT_ROWS,
        stage="hot",
    ),
    L1: TierSpec(
        title="L1 recent",
        enters="memories that were added, turns from L0",
        leaves="what was not used for long, the coldest when it is full",
        to=L2,
        limit=lambda settings: settings.max_recent,
        half_life_days=lambda settings: settings.recent_half_life_days,
        stage="candidates",
    ),
    L2: TierSpec(
        title="L2 registry",
        enters="memories from L1, turns of low importance from L0",
        leaves="what expired; the weakest are deleted when it is full",
        limit=lambda settings: settings.max_facts,
        half_life_days=lambda settings: REGISTRY_HALF_LIFE_DAYS,
        stage="candidates",
    ),
    DOCUMENTS: TierSpec(
        title="documents",
        unit="chunk",
        enters="chunks of the files of workspaces",
        leaves="what is no longer in its file",
        stage="candidates",
    ),
    WAITING: TierSpec(
        title="waiting",
        enters="saves into a shared root whose machine did not answer",
        leaves="what was sent there",
        to=L3,
        stage="candidates",
    ),
    L3: TierSpec(
        title="L3 shared",
        enters="saves into a shared root; it is on another machine and is not counted here",
        leaves="what is deleted there",
        stage="remote",
    ),
}


def build_searched() -> str:
    """Return the SQL condition of memories that searches may return: searchable, and in a tier that is searched."""
    others = ", ".join(repr(name) for name, tier in TIERS.items() if not tier.stage)
    return f"(m.searchable AND m.tier NOT IN ({others}))"
