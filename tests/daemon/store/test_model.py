"""Operations in any order leave what a model in plain dictionaries says: stored, searched, listed, counted, undone."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from life import ACTIONS, Life

from workbench import Clock, CountingEmbedder, running

STEPS = st.lists(st.tuples(st.sampled_from([*ACTIONS, "add", "undo"]), st.integers(0, 2**32)), min_size=5, max_size=40)
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # to make an example shorter takes minutes
UNHURRIED = {"deadline": None, "suppress_health_check": list(HealthCheck), "phases": PHASES}


def live(steps: list[tuple[str, int]]) -> None:
    clock = Clock()
    with TemporaryDirectory(prefix="mt-") as folder, running(Path(folder), CountingEmbedder(), clock=clock) as core:
        life = Life(core, clock)
        try:
            for name, seed in steps:
                life.do(name, seed)
                life.check()
            assert core.store.find_problems() == []
        finally:
            life.close()


@settings(max_examples=12, **UNHURRIED)  # type: ignore[arg-type]
@given(steps=STEPS)
def test_a_store_is_what_its_model_says(steps: list[tuple[str, int]]) -> None:
    live(steps)


@pytest.mark.stress
@pytest.mark.timeout(1200)
@settings(max_examples=600, **UNHURRIED)  # type: ignore[arg-type]
@given(steps=STEPS)
def test_a_store_is_what_its_model_says_for_long(steps: list[tuple[str, int]]) -> None:
    live(steps)
