"""The table of tiers: what the protocol, searches and the rest of the daemon know of tiers agrees with it."""

import re
from pathlib import Path
from typing import get_args

from memoryd import daemon
from memoryd.client.protocol import Tier, TierName
from memoryd.daemon.search.pipeline import list_stages
from memoryd.daemon.store import tiers
from memoryd.daemon.store.tiers import HOT, TIERS

DAEMON = Path(str(daemon.__file__)).parent


def test_the_protocol_names_the_tiers_of_the_table() -> None:
    assert list(get_args(TierName)) == list(TIERS), "client/protocol/base.py: TierName has the names of TIERS, in order"
    assert list(get_args(Tier)) == [name for name in TIERS if name != HOT], (
        "client/protocol/base.py: Tier has the names of TIERS that hold turns or memories, in order"
    )


def test_each_tier_is_searched_by_a_stage_and_leads_to_a_tier() -> None:
    stages = {stage.__name__ for stage in list_stages()}
    assert {tier.stage for tier in TIERS.values()} - {""} <= stages, "a tier's stage is one of the pipeline"
    assert {tier.to for tier in TIERS.values()} - {""} <= TIERS.keys(), "what leaves a tier goes to one of the table"


def test_each_tier_is_filled() -> None:
    code = "".join(path.read_text() for path in DAEMON.rglob("*.py") if path != DAEMON / "store" / "tiers.py")
    names = {value: name for name, value in vars(tiers).items() if isinstance(value, str) and value in TIERS}
    for name, tier in TIERS.items():
        assert re.search(rf"\b{names[name]}\b", code), f"a job or call fills {tier.title}: it imports {names[name]}"
