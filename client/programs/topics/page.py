"""What topics bring to the page of `memctl web`: the topics with what is in them, and a node.

Topics are made of L2. What is not there yet, of L1 and L0, is put to the topic whose name has most of its words, else
to others with a word in common, so that a young memory has topics too.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from memoryd.client.programs.memctl.snippet import list_stems
from memoryd.client.programs.memctl.table import count_text, to_one_line
from memoryd.client.programs.web.reports import parts
from memoryd.client.protocol import List, Turns
from memoryd.client.protocol.topics import GraphNodes, GraphTopics, NodeMember, Topic
from memoryd.client.transport.aio import AsyncClient

_PREVIEW = 80  # characters of a memory
_NEIGHBOURS = 30
_DESCRIBED, _EXAMPLES = 40, 2  # topics with examples of what is in them, and how many
_RECENT = 200  # memories of L1, and turns, that are put to topics
_LEAST = 2  # memories of a group
_GROUPS = 20
_NAME_WORDS = 3


class RecentMemory(NamedTuple):
    """A memory that is not in L2 yet, with the stems of its words as they are written."""

    id: str
    text: str
    namespace: str
    tier: str
    words: dict[str, str]


async def read_topics(client: AsyncClient, query: Mapping[str, str]) -> Any:
    """Return topics with examples and recent memories, groups of other recent ones, and how many nodes are alone."""
    found, listed, turns = await asyncio.gather(
        client.call(GraphTopics(reach="all")),
        client.call(List(tier=["L1"], limit=_RECENT, reach="all")),
        client.call(Turns(limit=_RECENT, reach="all")),
    )
    recent = [
        RecentMemory(one.id, one.content[: _PREVIEW * 2], one.namespace, tier, list_stems(one.content))
        for tier, memories in (("L1", listed), ("L0", turns))
        for one in memories
    ]
    examples = await asyncio.gather(*(_read_examples(client, topic) for topic in found.topics[:_DESCRIBED]))
    near = assign_recent([topic.label for topic in found.topics], recent)
    rest = [one for place, one in enumerate(recent) if place not in near]
    belongs: defaultdict[int, list[RecentMemory]] = defaultdict(list)
    for place, topic in near.items():
        belongs[topic].append(recent[place])
    return {
        "topics": [
            {
                **msgspec.structs.asdict(topic),
                "label": topic.label or to_one_line(topic.about)[:_PREVIEW],
                "examples": examples[place] if place < len(examples) else [],
                "recent": [_show_recent(one) for one in belongs[place]],
            }
            for place, topic in enumerate(found.topics)
        ],
        "groups": [
            {"id": f"words {name}", "label": name, "recent": [_show_recent(one) for one in group]}
            for name, group in group_by_words(rest)
        ],
        "alone": found.alone,
    }


async def _read_examples(client: AsyncClient, topic: Topic) -> list[str]:
    """Return the beginnings of the memories in the middle of the largest node of a topic."""
    nodes = (await client.call(GraphNodes(topic=topic.id, limit=1, reach="all"))).nodes
    if not nodes:
        return []
    members = (await client.call(GraphNodes(node=nodes[0].id, reach="all"))).members
    return [to_one_line(one.preview) for one in members[:_EXAMPLES]]


def _show_recent(one: RecentMemory) -> dict[str, str]:
    return {"id": one.id, "text": one.text, "namespace": one.namespace, "tier": one.tier}


def assign_recent(labels: Sequence[str], recent: Sequence[RecentMemory]) -> dict[int, int]:
    """Return the place of the topic for each place of a recent memory that has two words of its name or more."""
    stems = [frozenset(list_stems(label)) for label in labels]
    found: dict[int, int] = {}
    for place, one in enumerate(recent):
        shared = [len(stems_of & one.words.keys()) for stems_of in stems]
        if shared and max(shared) >= _LEAST:
            found[place] = shared.index(max(shared))
    return found


def group_by_words(recent: Sequence[RecentMemory]) -> list[tuple[str, list[RecentMemory]]]:
    """Return groups of memories with a word in common, each with its name, the largest first; the rest at the end."""
    left, groups = list(recent), list[tuple[str, list[RecentMemory]]]()
    while left and len(groups) < _GROUPS:
        counts = Counter(stem for one in left for stem in one.words)
        stem, many = max(counts.items(), key=lambda item: (item[1], item[0]), default=("", 0))
        if many < _LEAST:
            break
        group = [one for one in left if stem in one.words]
        groups.append((name_group(stem, group), group))
        left = [one for one in left if stem not in one.words]
    return [*groups, *([("Others", left)] if left else [])]


def name_group(stem: str, group: Sequence[RecentMemory]) -> str:
    """Return the word that all have, and the next ones that most of them have."""
    counts = Counter(other for one in group for other in one.words)
    others = [other for other, many in counts.most_common() if many >= _LEAST and other != stem]
    forms = (
        Counter(one.words[chosen] for one in group if chosen in one.words) for chosen in [stem, *others][:_NAME_WORDS]
    )
    return ", ".join(form.most_common(1)[0][0] for form in forms)


async def read_node(client: AsyncClient, query: Mapping[str, str]) -> parts.Part:
    """Return a node of the graph: the memories in it, and what is beside it."""
    found = await client.call(GraphNodes(node=query.get("id", ""), reach="all"))
    [node] = found.nodes
    beside = found.neighbours[:_NEIGHBOURS]
    where = parts.place(node.namespace), node.label and f"named by {node.named_by}"
    lines = (parts.line(one.relation.replace("_", " "), f"{one.weight:.2f}", one.label or one.about) for one in beside)
    return [
        "div",
        ["h2", node.label or to_one_line(node.about)[:_PREVIEW]],
        parts.line(f"node {node.id}", *where),
        parts.section(count_text(len(found.members), "memory"), parts.list_items(map(_show_member, found.members))),
        parts.section("Beside it", parts.list_items(lines)) if beside else None,
    ]


def _show_member(one: NodeMember) -> parts.Part:
    score = "" if one.similarity is None else f"{one.similarity:.2f}"
    return ["p.hit", ["span.score", score], parts.link(one.id, one.preview)]
