"""`kill -9` while the graph is written: what is there is sound, and the next run completes it."""

import subprocess
import sys
from pathlib import Path

import pytest

from graphs import check, graph, make_graph, near, remember
from memoryd.daemon.topics.tables.graph import find_problems
from workbench import CountingEmbedder, running

# Makes the graph round by round, three nodes in a transaction, and says so between two of them.
MAKING = """
import sys
from pathlib import Path
from graphs import near, remember, search_together
from memoryd.daemon.topics import rebuild
from workbench import CountingEmbedder, running

rebuild._WRITTEN = 3
with running(Path(sys.argv[1]), CountingEmbedder()) as core:
    for turn in range(6):
        given = [near(i % 5, 0.75 + 0.04 * turn, 10 + i % 7) for i in range(60)]
        rows = remember(core, [f"round {turn}, text {i}" for i in range(60)], ("", "a")[turn % 2], given)
        search_together(core, *rows[:5])
        for step in rebuild.plan(core, core.clock()):
            rebuild.run(core, step, lambda: print("portion", flush=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize("portions", [10, 25, 60, 90, 140])
def test_a_crash_leaves_a_graph_that_the_next_run_completes(folder: Path, portions: int) -> None:
    command = [sys.executable, "-c", MAKING, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1]) as child:
        assert child.stdout is not None
        for _ in range(portions):
            assert child.stdout.readline() == b"portion\n"
        child.kill()
    with running(folder, CountingEmbedder()) as core:
        with core.store.reading() as connection:
            assert find_problems(connection) == []
        make_graph(core)
        check(core)
        before = graph(core)
        make_graph(core)
        assert graph(core) == before
        remember(core, ["after the crash"], given=[near(3)])
        make_graph(core)
        check(core)
