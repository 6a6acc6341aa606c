"""`kill -9` while clustering writes: what is there is sound, and the next run completes it."""

import subprocess
import sys
from pathlib import Path

import pytest

from graphs import check, maintain, near, remember, steps
from memoryd.daemon.topics.tables import graph_faults
from workbench import CountingEmbedder, running

# Clusters in slices of three steps and says so after each; what it writes comes round by round, so that nodes are
# founded, grow, are split and merged.
CLUSTERING = """
import sys
from pathlib import Path
from graphs import carry_out, near, remember, steps
from workbench import CountingEmbedder, running

with running(Path(sys.argv[1]), CountingEmbedder()) as core:
    for turn in range(6):
        given = [near(i % 5, 0.75 + 0.04 * turn, 10 + i % 7) for i in range(60)]
        remember(core, [f"round {turn}, text {i}" for i in range(60)], ("", "a")[turn % 2], given)
        planned = steps(core)
        for start in range(0, len(planned), 3):
            carry_out(core, planned[start : start + 3], 3)
            print("slice", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("slices", [1, 2, 7, 15, 30, 47])
def test_a_crash_leaves_a_graph_that_maintenance_completes(folder: Path, slices: int) -> None:
    command = [sys.executable, "-c", CLUSTERING, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1]) as child:
        assert child.stdout is not None
        for _ in range(slices):
            assert child.stdout.readline() == b"slice\n"
        child.kill()
    with running(folder, CountingEmbedder()) as core:
        with core.store.reading() as connection:
            assert graph_faults.find_problems(connection) == []
        maintain(core)
        check(core)
        assert steps(core) == []
        remember(core, ["after the crash"], given=[near(3)])
        maintain(core)
        check(core)
