"""How a plan speaks of nodes and memories to people."""


def format_target(node: int) -> str:
    """Return what a step on a node names as its target."""
    return f"node {node}"


def format_memories(number: int) -> str:
    """Return a number of memories."""
    return "1 memory" if number == 1 else f"{number} memories"


def format_growth(was: int, now: int, joined: int) -> str:
    """Return what became of a node's size when memories joined it, or left it in a split."""
    if not joined:
        return f"it keeps {now} of {was} memories"
    return f"{format_memories(joined)} joined, it has {now}" + ("" if now == was + joined else " after a split")


def shorten(label: str) -> str:
    """Return a label as it fits into a reason."""
    return label if len(label) <= 48 else label[:47].rstrip() + "…"
