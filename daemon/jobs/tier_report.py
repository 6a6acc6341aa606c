"""The report on tiers: counts on disk, bytes in RAM, and what became of the turns of each namespace."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from memoryd.client import protocol
from memoryd.daemon.arrays.columns import TierCount
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories.changing import visible_condition
from memoryd.daemon.registry import handles
from memoryd.daemon.rooms import list_rooms
from memoryd.daemon.store import extraction, turns
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.conversion import convert_to
from memoryd.daemon.store.namespaces import check
from memoryd.daemon.store.tiers import HOT, L0, L3, TIERS, WAITING

_HOT_BYTES = 100  # of an entry of the hot buffer
_ROW_BYTES = 37  # of the columns that filters read, per memory


@handles(protocol.Turns)
def list_turns(core: Core, call: protocol.Turns) -> protocol.ActiveTurns:
    """Return the turns in L0, newest first."""
    active_turns = core.active.list_turns(core.store.namespaces.reach(check(call.namespace), call.reach))
    if call.session is not None:
        active_turns = [turn for turn in active_turns if turn.session == call.session]
    part = active_turns[: call.limit]
    with core.store.reading() as connection:
        unjudged = extraction.select_waiting(connection, "rate", [turn.key for turn in part])
        skipped = turns.read_skipped(connection, visible_condition(core, call), call.limit) if call.skipped else []
        if call.session is not None:
            skipped = [skip for skip in skipped if skip.session == call.session]
    name = core.store.namespaces.name
    return protocol.ActiveTurns(
        turns=[
            convert_to(
                protocol.Turn,
                turn,
                id=turn.key,
                namespace=name(turn.namespace),
                judged=turn.key not in unjudged,
                files=turn.files.splitlines(),
            )
            for turn in part
        ],
        total=len(active_turns),
        ring=TIERS[L0].limit(core.config.tiers),
        skipped=[convert_to(protocol.SkippedTurn, skip, namespace=name(skip.namespace)) for skip in skipped],
    )


@handles(protocol.Tiers)
def tiers(core: Core, call: protocol.Tiers, caller: Caller = USER) -> protocol.TierReport:
    """Return the state of all tiers within reach. A bound caller does not see what searches returned."""
    reached = core.store.namespaces.reach(check(call.namespace), call.reach)
    condition = visible_condition(core, call)
    counts = core.arrays.columns.count_standing(reached)
    with core.store.reading() as connection:
        account = turns.read_flows(connection, condition)
        waiting = extraction.count_within(connection, condition)
        reported = {
            name: count for room in list_rooms() for name, count in room.report_tiers(connection, condition).items()
        }
    active = core.active.list_turns(reached)
    core.effects.take_in()
    hot = {
        name: fill
        for name, fill in core.hot.fill().items()
        if not caller.bound and (reached is None or core.store.namespaces.find_number(name) in reached)
    }
    flows: Counter[str] = Counter()
    for of_namespace in account.values():
        flows.update(of_namespace)
    return protocol.TierReport(
        tiers=_build_states(core, counts, active, hot),
        namespaces=_build_namespaces(core, counts, active, account),
        flows={kind: count for kind, count in sorted(flows.items()) if count},
        waiting={task: many for task, many in waiting.items() if task not in extraction.OF_CONVERSATIONS},
        resting={task: many for task, many in waiting.items() if task in extraction.OF_CONVERSATIONS},
        **reported,
    )


def _build_states(
    core: Core, counts: list[TierCount], active: list[turns.StoredTurn], hot: dict[str, int]
) -> list[protocol.TierState]:
    """Return what each tier holds, in the order of the table."""
    generation, hot_rows = core.embedding.active, sum(hot.values())
    memory_bytes = _ROW_BYTES + (generation.index.dimensions + 16 if generation else 0)
    turn_times = [turn.created_at for turn in active]
    holdings = {
        L0: _Held(len(active), sum(turn.size_bytes() for turn in active), turn_times, turn_times),
        HOT: _Held(hot_rows, _HOT_BYTES * hot_rows),
    }
    for name in TIERS.keys() - holdings.keys():
        parts = [part for part in counts if part.tier == name]
        count = sum(part.memories for part in parts)
        oldest, newest = [part.oldest_at for part in parts], [part.newest_at for part in parts]
        holdings[name] = _Held(count, count * memory_bytes, oldest, newest)
    return [
        protocol.TierState(
            name=name,  # type: ignore[arg-type]
            title=tier.title,
            unit=tier.unit,
            count=holdings[name].memories,
            ram_bytes=holdings[name].ram_bytes,
            limit=tier.limit(core.config.tiers),
            oldest_at=min(holdings[name].oldest, default=None),
            newest_at=max(holdings[name].newest, default=None),
        )
        for name, tier in TIERS.items()
        if holdings[name].memories or name not in (WAITING, L3)  # these are listed only if used
    ]


class _Held(NamedTuple):
    """What a tier holds: how many, bytes of RAM, creation times of the oldest and the newest of each part."""

    memories: int
    ram_bytes: int
    oldest: Sequence[float] = ()
    newest: Sequence[float] = ()


def _build_namespaces(
    core: Core, tier_counts: list[TierCount], active: list[turns.StoredTurn], account: dict[int, dict[str, int]]
) -> list[protocol.NamespaceTiers]:
    counts: dict[int, Counter[str]] = {number: Counter() for number in account}
    for turn in active:
        counts.setdefault(turn.namespace, Counter())[L0] += 1
    for part in tier_counts:
        counts.setdefault(part.namespace, Counter())[part.tier] = part.memories
    reports = [
        protocol.NamespaceTiers(
            namespace=core.store.namespaces.name(number), tiers=there, flows=account.get(number, {})
        )
        for number, there in counts.items()
    ]
    return sorted(reports, key=lambda one: (-sum(one.tiers.values()), one.namespace))
