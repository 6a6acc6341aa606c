"""What the year's demo prints: a line for each month, and three stories."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from memoryd.client.errors import NotFound
from memoryd.client.memctl.output import columns, paint
from memoryd.client.memctl.table import count_text, draw_bar, ms_text, shorten, to_one_line
from memoryd.client.protocol import Explanation, Hit
from scripted import stories as script
from scripted.playing import Player

DAY_S = 86400.0
SCALE = 25  # memories that one column of a bar stands for
BARS = 5, 26  # columns for L1 and L2
_SHOWN_MS = 0.05  # stages that take less are not told


class Story(NamedTuple):
    """One story: its heading, its lines, and the same as figures."""

    name: str
    heading: str
    lines: list[str]
    figures: dict[str, Any]


# Months ---------------------------------------------------------------------------------------------------------------


def month(player: Player, at: float) -> dict[str, Any]:
    """Return what the tiers hold and what became of turns so far."""
    report = player.root.tiers()
    held = {state.name: state.count for state in report.tiers}
    flows = report.flows

    def sum_of(kind: str) -> int:
        return sum(number for name, number in flows.items() if name.startswith(kind))

    return {
        "month": datetime.fromtimestamp(at, UTC).strftime("%b %Y"),
        "observed": flows.get("observed", 0),
        "skipped": sum_of("skipped: "),
        "dropped": sum_of("dropped: "),
        **{name: held[name] for name in ("L0", "L1", "L2")},
        "nodes": report.nodes,
        "expired": player.deleted,
    }


def heading() -> str:
    """Return the line above the months."""
    first, second = (f"{name:>4} {'':<{size}}" for name, size in zip(("L1", "L2"), BARS, strict=True))
    before = f"{'':<10}{'said':>6}{'skipped':>9}{'dropped':>9}{'L0':>5}"
    return paint(f"   {before}   {first} {second}{'nodes':>6}{'gone':>6}", "bold")


def month_line(found: dict[str, Any]) -> str:
    """Return one month as a line with bars."""
    first, second = (_bar(found[name], size) for name, size in zip(("L1", "L2"), BARS, strict=True))
    before = f"{found['month']:<10}{found['observed']:>6}{found['skipped']:>9}{found['dropped']:>9}{found['L0']:>5}"
    return f"   {before}   {first} {second}{found['nodes']:>6}{found['expired']:>6}"


def _bar(number: int, size: int) -> str:
    drawn = draw_bar(number / SCALE / size, size)
    return f"{number:>4} {paint(drawn, 'cyan')}{' ' * (size - len(drawn))}"


# Stories --------------------------------------------------------------------------------------------------------------


def stories(player: Player, seed: int, began: float, words_only: bool) -> list[Story]:
    """Look at what became of the three."""
    return [_decision(player, seed), _forgotten(player, seed, words_only), _expired(player, seed, began)]


def _decision(player: Player, seed: int) -> Story:
    """Follow a decision through the tiers by its history."""
    asked, decided = script.decision_ids(seed)
    client = player.client(script.PLACE)
    memory = client.get(asked)
    steps = [f"{_date(memory.created_at)}  said in {script.PLACE}: L0"]
    steps += [f"{_date(change.at)}  {_WAYS.get(change.kind, change.kind)}" for change in client.history(asked)]
    if nodes := client.graph_nodes("sessions restart survives").nodes:
        beside = client.graph_node(nodes[0].id).members
        others = f"beside {count_text(len(beside) - 1, 'memory')} about the same"
        steps.append(f"{'today':<10}  {memory.tier}, node {nodes[0].id}, {others}:")
        steps += [f"{'':<12}{_quoted(one.preview, 15)}" for one in beside if one.id != asked][:3]
    explained = client.explain(script.DECISION_QUESTION, limit=3, touch=False)
    rank = _rank(explained.hits, asked)
    lines = [_quoted(script.DECIDED), *steps, *_explained(explained, asked, rank)]
    figures = {"id": asked, "answer": decided, "tier": memory.tier, "rank": rank, "steps": steps}
    return Story("decision", "1. A decision, from turn to topic", lines, figures)


def _explained(explained: Explanation, id: str, rank: int | None) -> list[str]:
    """Return how a search found a memory, as `memctl explain` tells it."""
    trace = explained.trace
    found = next((candidate for candidate in trace.candidates if candidate.id == id), None)
    by = " and ".join(found.origins) if found else "nothing"
    stages = " · ".join(
        f"{stage.name} {ms_text(stage.took_ms)}" for stage in trace.stages if stage.took_ms >= _SHOWN_MS
    )
    return [
        f"“{trace.query}” finds it: number {rank} of {len(trace.candidates)}, by {by},",
        shorten(f"in {ms_text(trace.took_ms)} ms: {stages} …", columns() - 3),
    ]


_WAYS = {
    "job:promote": "left L0; what decides, matters: L1, as a memory",
    "job:sweep": "not used for 16 days: L2, question and answer as one memory",
    "add": "added: L1",
}


def _forgotten(player: Player, seed: int, words_only: bool) -> Story:
    """Ask for one of two notes that were often needed together, with the graph and without."""
    known, forgotten = script.note_ids(seed)
    client = player.client(script.PLACE)
    note = client.get(forgotten)
    rankings = {graph: client.search(script.LATER, limit=5, graph=graph, touch=False).hits for graph in (True, False)}
    needed = _date(note.last_accessed_at or note.created_at)
    lines = [
        _quoted(script.FORGOTTEN),
        f"{_date(note.created_at)}  added; last needed on {needed}, together with another note; {note.tier}",
        f"{'today':<10}  “{script.LATER}” has no word of it.",
    ]
    if words_only:
        lines.append("Without an embedding model there is no graph, so it does not return here.")
    else:
        lines += [*_side(rankings[True], "with the graph", forgotten), *_side(rankings[False], "without it", forgotten)]
    ranks = {graph: _rank(hits, forgotten) for graph, hits in rankings.items()}
    figures = {"id": forgotten, "beside": known, "rank_with_graph": ranks[True], "rank_without": ranks[False]}
    return Story(
        "forgotten", "2. A forgotten memory returns, because it was needed together with another", lines, figures
    )


def _side(hits: list[Hit], title: str, wanted: str) -> list[str]:
    lines = [paint(f"{title}:", "dim")]
    for number, hit in enumerate(hits, 1):
        text = shorten(to_one_line(hit.content), columns() - 18)
        line = f"{number}. {hit.score:.3f}  {text}"
        lines.append(f"  {paint(line, 'green') if hit.id == wanted else line}")
    return lines


def _rank(hits: list[Hit], id: str) -> int | None:
    return next((number for number, hit in enumerate(hits, 1) if hit.id == id), None)


def _expired(player: Player, seed: int, began: float) -> Story:
    """Show a summary whose time is over, and one that was over long ago."""
    expired, long_gone = script.summary_ids(seed)
    client = player.client(script.PLACE)
    memory = client.get(expired)
    shown = _rank(client.search(script.EXPIRED, touch=False).hits, expired)
    lines = [
        _quoted(script.EXPIRED),
        f"{_date(memory.created_at)}  added as a session summary, which lives 3 days",
        f"{_date(memory.expires_at or 0)}  expired: "
        + ("not in any search any more" if shown is None else f"STILL number {shown} of a search"),
        f"{'today':<10}  `memctl get {expired[:8]}` still reads it, for 30 days",
        f"The one of {_date(began + script.LONG_GONE_DAY * DAY_S)} is deleted: {_reading(player, long_gone)}",
    ]
    kinds = [change.kind for change in client.history(long_gone)]
    lines.append(f"Its history stays ({', '.join(kinds)}), and `memctl undo` of that run would bring it back.")
    figures = {"id": expired, "rank": shown, "readable": memory.content == script.EXPIRED, "history": kinds}
    return Story("expired", "3. An expired memory is gone, but readable by its id", lines, figures)


def _reading(player: Player, id: str) -> str:
    try:
        player.client(script.PLACE).get(id)
    except NotFound as error:
        return error.message
    return "STILL THERE"


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def _quoted(text: str, indent: int = 3) -> str:
    return f"“{shorten(to_one_line(text), columns() - indent - 2)}”"
