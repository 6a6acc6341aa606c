"""Screenshots of the page, to look at: python tests/memctl/web/screenshots.py FOLDER [--memories 0,3,300,100000]

Each view at 1,280 and 400 px, light and dark, over a made-up store with a fixed clock, clustered by the daemon's own
job. Of many memories most are written into the database with their vectors first, which takes seconds. `--docs`
writes the ones that the guide and README show.
"""

import argparse
import functools
import itertools
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[3]
sys.path[:0] = [str(CHECKOUT / "tests"), str(Path(__file__).parent)]

import numpy as np  # noqa: E402
from page import Browser, Served, Tab, expect  # noqa: E402
from shelf import NOON, SAID, fill, invent  # noqa: E402

from memoryd.client.protocol import NewMemory, RunJob  # noqa: E402
from memoryd.daemon.config import Config  # noqa: E402
from memoryd.daemon.core.core import Core  # noqa: E402
from memoryd.daemon.store import rows  # noqa: E402
from memoryd.daemon.store import vectors as stored  # noqa: E402
from memoryd.daemon.store.hashes import content_hash  # noqa: E402
from memoryd.daemon.store.rows import Row  # noqa: E402
from memoryd.daemon.store.tiers import L2  # noqa: E402
from memoryd.daemon.store.writer import Transaction  # noqa: E402
from workbench import Clock, Daemon, WordEmbedder, move_to_l2, wait_until  # noqa: E402

VIEWS = {
    "project": "project?ns=acme%2Fapi",
    "person": "project?ns=",
    "beside": "search?q=move+the+session+cache&m={id}",
    "search": "search?q=when+do+we+deploy",
    "context": "search?q=move+the+session+cache&tab=context",
    "recent": "search",
    "memory": "memory",
    "one": "m/{id}",
    "activity": "activity",
    "health": "health",
    "tiers": "health?tab=tiers",
    "topics": "health?tab=topics",
    "jobs": "health?tab=jobs",
}

# Of docs, with their heights.
PICTURES = {"web": ("project", 720), "web-search": ("beside", 620)}

ADDED = 300  # memories that come as an agent's do
PART = 2_000  # rows of one transaction
PLACES = ("acme/api", "acme/web", "acme/ops", "home")


class QuickEmbedder(WordEmbedder):  # type: ignore[misc, valid-type]
    """Keeps the direction of each word, so that 100,000 memories take a minute."""

    def _vector(self, text: str) -> Any:
        total = sum(map(self._word, text.split()))
        return total / max(float(np.linalg.norm(total)), 1e-9)

    @functools.lru_cache(maxsize=200_000)  # noqa: B019 - it lives as long as the process
    def _word(self, text: str) -> Any:
        return super()._vector(text)


def open_core(folder: Path, clock: Clock) -> Core:
    """Return a core that has its model."""
    core = Core(folder / "data", Config(), folder, lambda name, where: QuickEmbedder(), clock=clock)
    core.start()
    wait_until(lambda: core.embedding.active is not None)
    return core


def draw(folder: Path, many: int) -> None:
    """Write memories of L2 with their vectors into the database of a daemon that is stopped then."""
    core = open_core(folder, Clock())
    made = invent(many, NOON - 3 * 86400.0)
    for start in range(0, many, PART):
        core.store.write(functools.partial(_draw_part, core, made[start : start + PART], start)).result()
    core.close()


def _draw_part(core: Core, part: list[NewMemory], first: int, transaction: Transaction) -> None:
    connection, generation = transaction.connection, core.embedding.active
    assert generation is not None
    places = [core.store.namespaces.ensure(transaction, name) for name in PLACES]
    vectors = generation.embedder.embed_texts([memory.content for memory in part])
    for number, (memory, vector) in enumerate(zip(part, vectors, strict=True), start=first):
        at, key = memory.created_at or NOON, stored.text_hash(memory.content)
        stored.put(connection, generation.model, key, vector)
        row = Row(
            row=0,
            id=key.hex()[:32],
            namespace=places[number % len(places)],
            type=memory.type,
            source="manual",
            tier=L2,
            importance=memory.importance or 0.5,
            created_at=at,
            updated_at=at,
            content_hash=content_hash(memory.content),
            text_hash=key,
            content=memory.content,
        )
        rows.insert(connection, row)


@contextmanager
def serve(many: int) -> Iterator[tuple[Served, str]]:
    """Yield `memctl web` for a store with so many memories, and the id of one of them."""
    folder = Path(tempfile.mkdtemp(prefix="mt-"))
    clock = Clock()
    if many > ADDED:
        draw(folder, many - ADDED)
    core = open_core(folder, clock)
    daemon = Daemon(core, Config(), folder / "s")
    with daemon.client(timeout_s=600) as client:
        fill(client, clock, min(many, ADDED))
        if many:
            move_to_l2(core)
            client.call(RunJob(name="cluster"))
        told = client.search("Please move the session cache", limit=1, touch=False)
    served = Served(folder / "s")
    yield served, told[0].id if len(told) else "0" * 32
    served.stop()
    daemon.stop()
    core.close()
    shutil.rmtree(folder)


def shoot(tab: Tab, path: str, target: Path, width: int, height: int = 800) -> None:
    """Write the screenshot of one view."""

    def steps(page: Any) -> None:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("path => { location.hash = '/' + path; }", path)
        expect(page.locator("main h1")).to_be_visible()
        expect(page.locator(".loading")).to_have_count(0, timeout=60_000)
        page.wait_for_timeout(250)
        expect(page.locator(".loading")).to_have_count(0, timeout=60_000)
        page.screenshot(path=str(target))

    tab.look(steps)


def shoot_all(browser: Browser, folder: Path, many: int, names: list[str]) -> None:
    """Write the screenshots of all views for one number of memories."""
    with serve(many) as (served, id):
        tab = Tab(browser, served)
        for theme, width, name in itertools.product(("light", "dark"), (1280, 400), names):
            tab.look(lambda page, theme=theme: page.emulate_media(color_scheme=theme))
            shoot(tab, VIEWS[name].format(id=id), folder / f"{name}-{many}-{width}-{theme}.png", width)
        tab.close()


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path("screenshots"))
    parser.add_argument("--memories", default="0,3,300,100000")
    parser.add_argument("--views", default=",".join(VIEWS))
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    browser = Browser()
    if args.docs:
        with serve(len(SAID)) as (served, id):
            tab = Tab(browser, served, color_scheme="light")
            for name, (view, height) in PICTURES.items():
                target = CHECKOUT / "docs" / f"{name}.png"
                shoot(tab, VIEWS[view].format(id=id), target, 1100, height)
            tab.close()
    else:
        args.folder.mkdir(parents=True, exist_ok=True)
        for many in map(int, args.memories.split(",")):
            shoot_all(browser, args.folder, many, args.views.split(","))
    browser.close()


if __name__ == "__main__":
    main()
