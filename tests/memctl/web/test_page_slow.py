"""The page in a real Chromium, at length: accessibility in both themes, many tabs, a daemon that restarts, sizes."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from page import LIMIT_MS, Browser, Served, Tab, expect
from shelf import fill
from test_page import VIEWS

from workbench import move_to_l2

pytestmark = pytest.mark.slow
PATHS = [
    *VIEWS,
    "project?ns=",
    "project?ns=acme%2Fapi",
    "search?q=when+do+we+deploy",
    "search?q=deploy&tab=recent",
    "search?q=deploy&tab=context",
]


def show(page: Any, path: str) -> None:
    """Go to a view and wait until it has its answers."""
    page.evaluate("path => { location.hash = '/' + path; }", path)
    view = re.split(r"[/?]", path)[0]
    expect(page).to_have_title(re.compile("memory" if view == "m" else view, re.IGNORECASE))  # not the view before
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0, timeout=4 * LIMIT_MS)


def test_axe_finds_nothing_in_any_view(browser: Browser, morning: Any, served: Served, site: Served, axe: str) -> None:
    with morning.client() as client:
        id = client.list(limit=1)[0].id

    def steps(page: Any, paths: list[str], theme: str) -> dict[str, list[str]]:
        page.emulate_media(color_scheme=theme)
        found: dict[str, list[str]] = {}

        def check(name: str) -> None:
            page.evaluate(axe)
            wrong = page.evaluate("() => axe.run(document).then(found => found.violations)")
            if nodes := [f"{one['id']}: {node['html'][:160]}" for one in wrong for node in one["nodes"]]:
                found[name] = nodes

        for path in paths:
            show(page, path)
            check(path)
            if path == "activity" and page.locator(".op .what").count():
                page.locator(".op .what").first.click()
                expect(page.locator(".op .what").first).to_have_attribute("aria-expanded", "true")
                check("an operation")
        page.keyboard.press("?")
        check("help")
        page.keyboard.press("Escape")
        return found

    beside = [f"m/{id}", f"search?q=when+do+we+deploy&m={id}"]
    for where, paths in ((served, [*PATHS, *beside]), (site, VIEWS)):  # the site has no memories
        tab = Tab(browser, where)
        for theme in ("light", "dark"):
            assert tab.look(lambda page, paths=paths, theme=theme: steps(page, paths, theme)) == {}
        tab.close()
        assert tab.errors == []


def test_what_is_typed_and_sent_at_once_on_a_slow_machine_is_asked_whole(tab: Tab) -> None:
    def steps(page: Any) -> None:
        slow = page.context.new_cdp_session(page)
        for turn, rate in enumerate((4, 10, 20)):
            asked = f"when is deploy window {turn}?"  # another one each time: the page shows the last search again
            slow.send("Emulation.setCPUThrottlingRate", {"rate": 1})
            show(page, "activity")
            slow.send("Emulation.setCPUThrottlingRate", {"rate": rate})
            page.keyboard.press("/")
            page.keyboard.type(asked)
            page.keyboard.press("Enter")
            expect(page).to_have_url(re.compile(rf"q=when\+is\+deploy\+window\+{turn}%3F"))
            expect(page.get_by_label("Search memories")).to_have_value(asked)
        for rate in (4, 10, 20):
            slow.send("Emulation.setCPUThrottlingRate", {"rate": 1})
            show(page, "activity")
            show(page, "memory")
            page.keyboard.press("j")
            page.keyboard.press("Enter")
            text = page.locator(".side .body").inner_text()
            slow.send("Emulation.setCPUThrottlingRate", {"rate": rate})
            page.keyboard.press("e")
            page.keyboard.type(" indeed")
            expect(page.get_by_label("Text of the memory")).to_have_value(f"{text} indeed")

    tab.look(steps)


@pytest.mark.parametrize("width", [320, 400, 900, 1800])
def test_no_view_is_wider_than_the_window(tab: Tab, width: int) -> None:
    def steps(page: Any) -> list[str]:
        page.set_viewport_size({"width": width, "height": 800})
        wide = []
        for path in PATHS:
            show(page, path)
            if page.evaluate("() => document.documentElement.scrollWidth") > width:
                wide.append(path)
        return wide

    assert tab.look(steps) == []


def test_ten_tabs_have_one_stream_and_all_show_what_happens(tab: Tab, morning: Any, served: Served) -> None:
    def steps(page: Any) -> None:
        pages = [page]
        for _ in range(9):
            other = tab.context.new_page()  # no token of its own: another tab of the page gives it
            tab.watch(other)
            other.goto(served.base)
            pages.append(other)
        for one in pages:
            one.evaluate("location.hash = '/activity'")
            expect(one.locator(".op").first).to_be_visible(timeout=4 * LIMIT_MS)
        with morning.client() as client:
            client.add("Every tab sees this")
            following = [one.subscriptions for one in client.stats().daemon.clients if one.subscriptions]
        assert following == [1]
        for one in pages:
            expect(one.locator("button.new")).to_contain_text("1 new", timeout=4 * LIMIT_MS)
        page.close()  # the leader: another tab takes over, and all look at what they may have missed
        for one in pages[1:]:
            expect(one.get_by_text("Every tab sees this")).to_be_visible(timeout=4 * LIMIT_MS)
        with morning.client() as client:
            client.add("The others see this, too")
        for one in pages[1:]:
            expect(one.locator("button.new")).to_contain_text("1 new", timeout=4 * LIMIT_MS)

    tab.look(steps)


def test_the_page_says_that_the_daemon_is_away_and_goes_on_when_it_is_back(
    browser: Browser, start_daemon: Callable[..., Any]
) -> None:
    first = start_daemon()
    served = Served(first.socket)
    tab = Tab(browser, served)
    tab.look(lambda page: show(page, "activity"))
    tab.look(lambda page: expect(page.locator(".empty")).to_contain_text("Nothing was remembered yet"))
    first.stop()
    tab.look(lambda page: expect(page.locator(".away")).to_be_visible(timeout=4 * LIMIT_MS))
    second = start_daemon()
    with second.client() as client:
        client.add("Added while the page was alone")
    second.socket.rename(first.socket)

    def back(page: Any) -> None:
        expect(page.locator(".away")).to_have_count(0, timeout=4 * LIMIT_MS)
        expect(page.locator(".op .what")).to_contain_text("Added while the page was alone")

    tab.look(back)
    assert served.stop() == 0
    tab.look(lambda page: expect(page.locator(".away")).to_contain_text("memctl web", timeout=4 * LIMIT_MS))
    tab.close()


def test_many_are_selected_tagged_and_deleted_and_one_undo_takes_each_back(tab: Tab, morning: Any) -> None:
    def steps(page: Any) -> None:
        show(page, "memory")
        for number in range(3):
            page.locator(".row input").nth(number).check()
        page.get_by_label("Tag for the selected memories").fill("seen")
        page.keyboard.press("Enter")
        expect(page.locator(".toast")).to_contain_text("Tagged 3 memories")
        page.locator(".toast").get_by_role("button", name="Undo").click()
        expect(page.locator(".toast").last).to_contain_text("Undone: Tagged 3 memories")
        page.get_by_role("button", name="Delete (#)").click()
        expect(page.locator(".toast").last).to_contain_text("Deleted 3 memories")
        page.locator(".toast").last.get_by_role("button", name="Undo").click()
        expect(page.locator(".toast").last).to_contain_text("Undone: Deleted 3 memories")

    with morning.client() as client:
        before = {memory.id: memory.metadata for memory in client.list(limit=100)}
        tab.look(steps)
        assert {memory.id: memory.metadata for memory in client.list(limit=100)} == before


def test_a_memory_is_erased_for_good_after_what_goes_with_it_was_shown(tab: Tab, morning: Any) -> None:
    with morning.client() as client:
        wanted = next(memory for memory in client.list(limit=30) if "wagtail" in memory.content)

        def steps(page: Any) -> None:
            show(page, f"m/{wanted.id}")
            page.get_by_role("button", name="Erase…").click()
            expect(page.get_by_role("region", name="Erase")).to_contain_text("This erases 1 memory")
            page.get_by_role("button", name="Erase for good").click()
            expect(page.locator(".toast")).to_contain_text("Erased for good.")

        tab.look(steps)
        assert wanted.id not in {memory.id for memory in client.list(limit=100)}


def test_observing_is_paused_and_goes_on(tab: Tab, morning: Any) -> None:
    def pause(page: Any) -> None:
        show(page, "health?tab=tiers")
        page.get_by_role("button", name="Pause observing everywhere").click()
        expect(page.locator("main")).to_contain_text("Nothing is observed in any namespace.")

    def resume(page: Any) -> None:
        page.get_by_role("button", name="Observe again").click()
        expect(page.get_by_role("button", name="Pause observing everywhere")).to_be_visible()

    with morning.client("acme") as client:
        turns = [{"role": "user", "content": "The second office opens in March"}]
        tab.look(pause)
        assert client.observe(turns).accepted == 0
        tab.look(resume)
        assert client.observe(turns).accepted == 1


def test_a_plan_is_applied_as_it_was_shown_and_undone(tab: Tab, morning: Any, clock: Any) -> None:
    clock.advance(400 * 86400.0)

    def steps(page: Any) -> None:
        show(page, "health?tab=jobs")
        page.get_by_role("button", name="Plan sweep").click()
        expect(page.get_by_role("heading", name="Plan of sweep")).to_contain_text("steps")
        page.get_by_role("button", name="Apply").click()
        expect(page.locator(".toast")).to_contain_text("sweep: ")
        expect(page.get_by_role("region", name="Runs").locator("tbody tr").first).to_contain_text("done")

    with morning.client() as client:
        before = {memory.id: memory.tier for memory in client.list(limit=100)}
        tab.look(steps)
        assert {memory.tier for memory in client.list(limit=100)} >= {"L2"}
        tab.look(lambda page: page.keyboard.press("u"))
        tab.look(lambda page: expect(page.locator(".toast").last).to_contain_text("Undone: sweep"))
        assert {memory.id: memory.tier for memory in client.list(limit=100)} == before


def test_without_the_code_a_tab_says_what_to_do(browser: Browser, served: Served) -> None:
    def steps(chromium: Any) -> str:
        context = chromium.new_context()
        page = context.new_page()
        page.goto(served.base)
        text = str(page.locator("main.out").inner_text(timeout=10_000))
        context.close()
        return text

    assert "memctl web" in browser.do(steps)


def test_a_topic_shows_its_nodes_and_a_node_its_memories(tab: Tab, morning: Any) -> None:
    from memoryd.client.protocol import RunJob

    move_to_l2(morning.core)
    with morning.client() as client:
        client.call(RunJob(name="cluster"))

    def steps(page: Any) -> None:
        show(page, "health?tab=topics")
        page.locator(".list .topic").first.click()
        page.locator(".side .topic", has_not_text="concept").first.click()
        expect(page.locator(".side a[href^='#/m/']").first).to_be_visible()

    tab.look(steps)


def test_a_long_list_holds_only_the_rows_in_sight(browser: Browser, daemon: Any, served: Served, clock: Any) -> None:
    with daemon.client() as client:
        fill(client, clock, 5000)
    tab = Tab(browser, served)

    def steps(page: Any) -> None:
        show(page, "memory")
        expect(page.locator(".row").first).to_be_visible()
        page.locator(".rows").evaluate("rows => { rows.scrollTop = rows.scrollHeight; }")
        expect(page.locator("li[aria-posinset='5000'] .about, li[aria-posinset='4990'] .about").first).to_be_visible()
        assert page.locator(".row").count() < 60

    tab.look(steps)
    tab.close()


def test_a_memory_is_corrected_in_place_and_its_history_shows_the_difference(tab: Tab, morning: Any) -> None:
    with morning.client() as client:
        wanted = next(memory for memory in client.list(limit=30) if "wagtail" in memory.content)

        def steps(page: Any) -> None:
            page.evaluate("id => { location.hash = '/m/' + id; }", wanted.id)
            expect(page.locator(".body")).to_contain_text("wagtail")
            page.keyboard.press("e")
            page.get_by_label("Text of the memory").fill(wanted.content.replace("wagtail", "heron"))
            page.keyboard.press("Control+Enter")
            expect(page.locator(".body")).to_contain_text("heron")
            expect(page.locator("del").first).to_have_text("wagtail")
            expect(page.locator("ins").first).to_have_text("heron")
            page.keyboard.press("p")
            expect(page.locator(".side .badge.pin")).to_be_visible()

        tab.look(steps)
        after = client.get(wanted.id, touch=False)
        assert (re.search("heron", after.content) is not None, after.pinned) == (True, True)
        assert after.access_count == wanted.access_count  # looking counts no access
