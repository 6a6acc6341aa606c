"""The arithmetic of clusters, and labels by terms."""

from collections.abc import Sequence

import numpy as np
import pytest

from each import each
from graphs import near
from memoryd.daemon.core.core import Core
from memoryd.daemon.store import tokenizer
from memoryd.daemon.topics import clusters
from memoryd.daemon.topics.clusters import Pairs, agglomerate, find_communities, find_pairs, scale_to_unit
from memoryd.daemon.topics.label_words import Namer


def pause() -> None:
    """Wait for nothing."""


def made_up(count: int, around: int = 40) -> np.ndarray:
    """Return vectors around some directions."""
    drawn = np.random.default_rng(3)
    centres = scale_to_unit(drawn.normal(size=(around, 64)).astype(np.float32))
    noise = 0.7 / 8 * drawn.normal(size=(count, 64))
    return scale_to_unit((centres[drawn.integers(0, around, count)] + noise).astype(np.float32))


def as_set(pairs: Pairs) -> set[tuple[int, int]]:
    return set(zip(pairs.lower.tolist(), pairs.upper.tolist(), strict=True))


def test_pairs_are_those_among_the_nearest_above_the_floor_the_closest_first() -> None:
    units = np.stack([near(0), near(0, 0.9, 1), near(0, 0.5, 2), near(7)])
    assert as_set(find_pairs(units, 0.6, 5, pause)) == {(0, 1)}
    found = find_pairs(units, 0.4, 1, pause)
    assert list(zip(found.lower.tolist(), found.upper.tolist(), strict=True)) == [(0, 1), (0, 2)]
    assert found.cosines == pytest.approx([0.9, 0.5])
    assert as_set(find_pairs(units[:1], -1.0, 5, pause)) == as_set(find_pairs(units[:0], -1.0, 5, pause)) == set()


def test_among_many_vectors_nearly_all_pairs_are_found_by_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    units = made_up(3000, 300)
    exact = as_set(find_pairs(units, 0.6, 8, pause))
    monkeypatch.setattr(clusters, "_WHOLE", 0)
    monkeypatch.setattr(clusters, "_CELL", 30)
    found = as_set(find_pairs(units, 0.6, 8, pause))
    assert len(exact) > 3000
    assert len(found & exact) > 0.95 * len(exact)


def test_groups_hold_what_is_close_to_their_middle_and_no_more_than_fits() -> None:
    units = made_up(600)
    groups = agglomerate(units, [1] * 600, find_pairs(units, 0.5, 8, pause), 0.6, 20, pause)
    assert sorted(place for group in groups for place in group) == list(range(600))
    assert max(map(len, groups)) == 20
    for group in groups:
        middle = scale_to_unit(units[group].sum(axis=0)[None, :])[0]
        assert (units[group] @ middle).mean() > 0.7


def test_the_closest_pair_is_joined_first_and_sizes_count() -> None:
    units = np.stack([near(0), near(0, 0.8, 1), near(0, 0.9, 2)])
    pairs = find_pairs(units, 0.5, 5, pause)
    assert agglomerate(units, [1, 1, 1], pairs, 0.7, 2, pause) == [[0, 2], [1]]
    assert agglomerate(units, [1, 1, 1], pairs, 0.7, 3, pause) == [[0, 1, 2]]
    assert agglomerate(units, [19, 1, 2], pairs, 0.7, 20, pause) == [[0, 1], [2]]
    assert agglomerate(units, [1, 1, 1], pairs, 0.95, 3, pause) == [[0], [1], [2]]


def test_communities_are_found_alike_every_time_and_single_nodes_are_none() -> None:
    edges = [(a, b, 1.0) for group in (range(5), range(5, 10)) for a in group for b in group if a < b]
    edges.append((4, 5, 0.1))
    assert find_communities(edges) == find_communities(edges) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert find_communities([]) == []


def label(core: Core, texts: Sequence[str], sample: Sequence[str] = ()) -> str:
    with core.store.reading() as connection:
        stemmer = tokenizer.build_stemmer(connection)
        return Namer(sample, stemmer).label(texts, stemmer)


def test_a_label_is_the_most_distinctive_words_of_half_of_the_texts_as_they_are_written(core: Core) -> None:
    texts = ["Deploying billing: the service", "we deployed Billing, a service", "deploys of billing by the service"]
    found = label(core, texts, [f"the service number {number} has a cache" for number in range(20)]).split(", ")
    assert found[0] in ("billing", "Billing")
    assert {"deploy", "deploying", "deployed", "deploys"} & {word.casefold() for word in found}
    assert found[-1] == "service"


@each(
    ("texts", "said"),
    [
        ([], ""),
        (["the only text"], ""),
        (["and or the", "of the and"], ""),
        (["herons fly", "herons fish", "egrets swim", "otters dive", "frogs jump"], ""),
        (["herons fly", "herons fish", "otters dive", "frogs jump"], "herons"),
        (["Die Rechnung wird nicht geschickt", "Die Rechnung wird gemahnt und nicht bezahlt"], "Rechnung"),
        (["La factura que no se paga tiene un aviso", "La factura tiene un número que no cambia"], "factura"),
    ],
)
def test_a_label_has_no_words_of_fewer_than_half_of_the_texts_and_no_stop_words(
    core: Core, texts: list[str], said: str
) -> None:
    assert label(core, texts) == said
