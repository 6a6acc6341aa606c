"""Pictures of the page for README and the guide: python tests/memctl/web/screenshots.py

They show a made-up store with a fixed clock, clustered by the daemon's own job.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[3]
sys.path[:0] = [str(CHECKOUT / "tests"), str(Path(__file__).parent)]

from page import Browser, Served, Tab, expect  # noqa: E402
from shelf import SAID, fill  # noqa: E402

from memoryd.client.protocol import RunJob  # noqa: E402
from memoryd.daemon.config import Config  # noqa: E402
from memoryd.daemon.core.core import Core  # noqa: E402
from workbench import Clock, Daemon, WordEmbedder, move_to_l2, wait_until  # noqa: E402

# The pictures of docs: the view and its height.
PICTURES = {"web": ("project?ns=acme%2Fapi", 720), "web-search": ("search?q=move+the+session+cache&m={id}", 620)}


def shoot(page: Any, path: str, height: int, target: Path) -> None:
    """Write the picture of one view."""
    page.set_viewport_size({"width": 1100, "height": height})
    page.evaluate("path => { location.hash = '/' + path; }", path)
    expect(page.locator("main h1")).to_be_visible()
    page.wait_for_timeout(250)
    expect(page.locator(".loading")).to_have_count(0, timeout=60_000)
    page.screenshot(path=str(target))


def main() -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory(prefix="mt-") as made:
        folder, clock = Path(made), Clock()
        core = Core(folder / "data", Config(), folder, lambda name, where: WordEmbedder(), clock=clock)
        core.start()
        wait_until(lambda: core.embedding.active is not None)
        daemon = Daemon(core, Config(), folder / "s")
        with daemon.client(timeout_s=600) as client:
            fill(client, clock, len(SAID))
            move_to_l2(core)
            client.call(RunJob(name="cluster"))
            id = client.search("Please move the session cache", limit=1, touch=False)[0].id
        served, browser = Served(folder / "s"), Browser()
        tab = Tab(browser, served, color_scheme="light")
        for name, (view, height) in PICTURES.items():
            path, target = view.format(id=id), CHECKOUT / "docs" / f"{name}.png"
            tab.look(lambda page, path=path, height=height, target=target: shoot(page, path, height, target))
        tab.close()
        browser.close()
        served.stop()
        daemon.stop()
        core.close()


if __name__ == "__main__":
    main()
