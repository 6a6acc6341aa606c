"""The names of functions: a verb says what a function does, a predicate what it answers, a noun what it returns."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDERS = ("client", "models", "scheduler")
UNCHECKED = (
    "client/memctl/agents/hooks/",
    "client/memctl/memories.py",
    "client/memctl/observe.py",
    "client/memctl/tiers.py",
)

PREDICATES = {"is", "has", "can"}
# First words, in the imperative. Each was read once: a participle, an adverb or a preposition is none of them.
VERBS = set(
    """
    abstract add allow answer append apply ask assemble assign authenticate await backup become begin bench
    build call catch change check choose clean clear close complain complete confirm connect consolidate
    continue convert copy count cut declare decode dedupe delete deliver describe diff dismiss download draw drop embed
    encode end escape evaluate examine exchange explain export extend fail feed fetch fill find finish fire fit
    fix follow forget format frame get give go group hand hash ignore import index install interrupt join judge
    kill launch lay leave list load locate lock make manage mark measure merge move multiply narrow normalise
    note observe open pad paint parse pause place pool pop postprocess prepare print prune pull put quantise
    quote rank read receive record recover redact refuse register remember remove rename repair replace report
    require rescue reset resolve restart restore resume revoke rewrite round run save say search seed send
    serialise serve set settle share shorten show shutdown silence simplify skip split spool stack start stop
    store strip subscribe suggest sum summarise summarize survey sweep switch sync tag take to try undo
    uninstall unpack use verify view wait warn watch wipe work wrap write
    """.split()
)
# What functions return that change nothing: the last word of a name, or the one before `_of`, `_in`, `_at`, `_for`.
NOUNS = set(
    """
    address candidates cell cells checkout client code columns command commit date day days decoder dir edges
    encoding end environment error event extent families fence fields figures filters fingerprint first folder
    format greeting hit id ids iso key keys kind level limit line lines links marks median memory message metadata
    midnight model moment month name names namespace ndcg neighbours options order origin pairs parameter path
    payloads percentile period place progress query question radius rank rate reach recall relations remote
    result root row rss scales schema seconds section sentence settings share size slug socket spacing span stem
    style summary text time title token tools turn type unit uri url value values variables verbs width
    """.split()
)
# Names of the public interface, of commands and of what a library calls.
GIVEN = set(
    """
    aclose context doctor dream error feedback graph_abstract graph_dedupe graph_edges graph_export graph_node
    graph_nodes graph_regroup graph_topics hello history installed job_history jobs main matches may_name_a_date
    namespace on_weekday operations overlaps persistent_load retry_after_s rpc skipped stats status tiers topics
    trace turns update visit why_not workspace_status workspaces
    """.split()
)
_RELATION = re.compile(r"_(?:of|in|at|for|ago|s|ms|bytes)(?:_|$)")


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
            yield node


def _is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = {ast.unparse(decorator) for decorator in function.decorator_list}
    return any(name.endswith(("property", ".setter")) for name in names)


def _is_plain(name: str) -> bool:
    name = name.strip("_")
    head = _RELATION.split(name)[0].rpartition("_")[2]
    return name.partition("_")[0] in VERBS | PREDICATES or head in NOUNS or name in GIVEN


def _modules() -> list[str]:
    found = (path for folder in FOLDERS for path in (CHECKOUT / folder).rglob("*.py"))
    names = sorted(path.relative_to(CHECKOUT).as_posix() for path in found)
    return [name for name in names if not name.startswith(UNCHECKED)]


@pytest.mark.parametrize("module", _modules())
def test_functions_are_verbs_or_predicates(module: str) -> None:
    others = [
        f"{module}:{function.lineno}: {function.name}"
        for function in _functions(CHECKOUT / module)
        if not _is_property(function) and not _is_plain(function.name)
    ]
    assert others == [], (
        "begin these names with a verb in the imperative (`format_rows`, not `_formatted`) or with is_, has_, can_; "
        "a verb that is new here is added to VERBS, what a function returns without changing anything to NOUNS"
    )
