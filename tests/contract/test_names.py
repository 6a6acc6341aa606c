"""The names of functions: a verb says what a function does, a predicate what it answers, a noun what it returns."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryd.client.protocol import METHODS, method_name

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDERS = ("client", "daemon", "models", "scheduler")

PREDICATES = {"is", "has", "can", "may", "was"}
# First words, in the imperative. Each was read once: a participle, an adverb or a preposition is none of them.
VERBS = set(
    """
    abort abstract accept acknowledge act activate add admit adopt advise allocate allow answer append apply arrange ask
    assemble assign attach attempt authenticate await back backup batch become begin bench bind branch bring build call
    cancel catch change check checkpoint choose chunk classify clean clear clip close cluster compare compile complain
    complete compute condense confirm connect consolidate continue convert copy count create cut declare decode dedupe
    degrade delete deliver descend describe diff digest dismiss diversify divide download drain draw dream drop dump
    embed emit encode end ensure erase escape evaluate examine evict exchange exclude execute expand explain export
    extend extract fail feed fetch fill find finish fire fit fix flush fold follow foresee forget format frame fuse
    gather generate get give go grant greet group grow guard hand handle hash hasten hold hurry ignore import index
    inherit insert install interrupt introduce iterate join judge keep kill label launch lay learn leave lend lengthen
    let list listen load locate lock look lose lower maintain make manage mark match measure mention merge migrate move
    multiply name narrow negate normalise note notify observe offer open outline pad paint pair parse paste pause
    perform place plan poll pool pop post postprocess predict prepare print propose prune publish pull pulse purge push
    put quantise queue quote rank rate read rebuild receive recentre record recover redact refresh refuse register
    regroup regulate reindex reject release remember remove rename renew renumber repair replace replay report request
    requeue require rescue reserve reset resize resolve rest restart restore restrict resume retire retrieve retry
    reverse revoke rewrite rotate round run sample saturate save say scale scan score seal search secure see seed select
    send serialise serve set settle share shorten show shut shutdown silence simplify skip smooth spend split spool
    spread stack start stem step stop store strengthen strip submit subscribe suggest sum summarise summarize supersede
    survey swap sweep switch sync tag take tally think to tokenize touch translate trim try undo uninstall unmention
    unpack unqueue unshare update use verify view wait wake warm warn watch weigh wipe work wrap write
    """.split()
)
# What functions return that change nothing: the last word of a name, or the one before `_of`, `_in`, `_at`, `_for`.
NOUNS = set(
    """
    address advice age badge bar bounds bucket candidates cell cells checkout checksum client code columns command
    commit condition confidence cosine cosines cost date day days decoder dir edges elapsed encoding end ending
    environment error event extent factor facts failure families fence fields figures filters fingerprint first floor
    folder format greeting hash heading hit id ids importance interval iso key keys kind level limit line lines
    link links margins marks mean median memory message metadata midnight model moment month name names namespace ndcg
    nearness neighbours options order origin pages pairs panel parameter path payloads percentile percentiles period
    place progress query question radius range rank rarity rate reach reason recall recency refusal relations remark
    remote result root row rss scales schema score seconds section sentence session settings share size slug socket
    spacing span state stem style subject summary table text time title token tools turn type unit uri url value values
    variables verbs verdict weight weights width
    """.split()
)
# Names of the public interface, of commands and of what a library calls; those of methods count as well.
GIVEN = set(
    """
    abatch aclose active connection_lost connection_made context cues data_received doctor error handles hot
    installed jaccard logistic main matches may_name_a_date namespace on_response_complete on_weekday overlaps
    persistent_load reading remaining_s retry_after_s rpc rrf shared topics trace visit workspace_status
    """.split()
)
METHOD_NAMES = {method_name(method) for method in METHODS}
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
    given = name in GIVEN or name.removesuffix("_arguments") in METHOD_NAMES
    return given or name.partition("_")[0] in VERBS | PREDICATES or head in NOUNS


def _modules() -> list[str]:
    found = (path for folder in FOLDERS for path in (CHECKOUT / folder).rglob("*.py"))
    return sorted(path.relative_to(CHECKOUT).as_posix() for path in found)


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
