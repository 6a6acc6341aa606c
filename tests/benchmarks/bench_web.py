"""The page of `memctl web`: an event until it is in the page, the first view, frames of a long list, its process.

An event counts from before the call that adds a memory until the page has changed, so the add itself is part of it.
"""

import sys
import time
from pathlib import Path
from typing import Any

import corpus
from harness import Report, median, percentile, running

sys.path.insert(0, str(Path(__file__).parents[1] / "memctl" / "web"))
from page import Browser, Served, Tab

STATIC = Path(__file__).parents[2] / "client" / "programs" / "web" / "static"
_FIRST = """new MutationObserver(() => {
  if (!window.first && document.querySelector('.saved')) window.first = performance.now();
}).observe(document, { childList: true, subtree: true });"""
_WATCH = """() => { window.seen = []; let last = ''; new MutationObserver(() => {
  const text = document.querySelector('button.new')?.textContent || '';
  if (text !== last) { last = text; window.seen.push(performance.timeOrigin + performance.now()); }
}).observe(document.body, { childList: true, subtree: true, characterData: true }); }"""
_SCROLL = """async () => {
  const rows = document.querySelector('.rows'), frames = [];
  let last = performance.now();
  for (let step = 0; step < 150; step++) {
    rows.scrollTop = rows.scrollHeight * step / 150;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    frames.push(now - last);
    last = now;
  }
  return frames;
}"""


def main() -> None:
    """Open the page, look, add, scroll, for each number of memories."""
    report = Report(__doc__)
    browser = Browser()
    for memories in report.sizes():
        _measure(report, browser, memories, 10 if report.quick else 40)
    browser.close()
    sizes = {kind: sum(path.stat().st_size for path in STATIC.rglob(f"*.{kind}")) for kind in ("js", "css")}
    vendored = sum(path.stat().st_size for path in (STATIC / "vendor").glob("*.js"))
    own = sizes["js"] - vendored
    report.note(f"JavaScript: {own:,} bytes of its own, {vendored:,} vendored; CSS: {sizes['css']:,} bytes.")
    report.close()


def _measure(report: Report, browser: Browser, memories: int, rounds: int) -> None:
    with running(memories, kind="plain") as daemon, daemon.client() as client:
        client.add("An operation to show", dedup=False)
        served = Served(daemon.socket)
        tab = Tab(browser, served, real_time=True)
        first = [tab.look(_reload) for _ in range(rounds)]
        tab.look(_watch)
        sent = []
        for number in range(rounds):
            sent.append(time.time() * 1000)
            client.add(f"{corpus.memory(number)} as an event", dedup=False)
            tab.look(lambda page: page.wait_for_timeout(150))
        seen = tab.look(lambda page: page.evaluate("window.seen"))
        events = [at - began for began, at in zip(sent, seen, strict=True)]
        frames = tab.look(_scroll)
        rss_mb = _rss_mb(served.child.pid)
        tab.close()
        served.stop()
    rows = [
        {"what": name, "p50 ms": median(found), "p95 ms": percentile(found, 95)}
        for name, found in (("add → in the page", events), ("first view", first), ("frame of a scrolled list", frames))
    ]
    report.table(f"{memories:,} memories, {rounds} events", rows)
    report.note(f"The page's process has {rss_mb:.0f} MB.")


def _reload(page: Any) -> float:
    page.add_init_script(_FIRST)
    page.reload()
    page.wait_for_selector(".saved")
    return float(page.evaluate("window.first"))


def _watch(page: Any) -> None:
    page.keyboard.press("4")
    page.wait_for_selector(".op")
    page.evaluate(_WATCH)


def _scroll(page: Any) -> list[float]:
    page.keyboard.press("3")
    page.wait_for_selector(".row")
    return list(page.evaluate(_SCROLL))


def _rss_mb(pid: int) -> float:
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1000


if __name__ == "__main__":
    main()
