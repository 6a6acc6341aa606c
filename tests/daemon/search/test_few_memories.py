"""Where little is stored, most words say little: what is meant decides. With the real default model."""

from pathlib import Path

from memoryd import models
from workbench import add_many, running, search

FACTS = ["I drink green tea", "I work in Lyon", "My sister is called Ruth", "The dog's name is Biscuit"]


def test_a_small_word_that_most_memories_share_does_not_outweigh_the_meaning(folder: Path, model_dir: Path) -> None:
    with running(folder, lambda name, where: models.load(name, model_dir)) as core:
        add_many(core, FACTS)
        for question, answer in (("do I have siblings?", FACTS[2]), ("what pet do I have?", FACTS[3])):
            assert search(core, question).hits[0].content == answer
