"""A walk through the page by keyboard alone: every key arrives, results stay, axe-core finds nothing in any view."""

from typing import Any

from page import LIMIT_MS, expect

VIEWS = ("Project", "Search", "Memory", "Activity", "Health")
_ASKED = "when is the deploy window?"


class Walk:
    """One walk in a tab; `problems` are what axe-core found, by view."""

    def __init__(self, page: Any, axe: str) -> None:
        self._page, self._axe = page, axe
        self.problems: dict[str, list[str]] = {}

    def run(self) -> dict[str, list[str]]:
        """Go through all views; return what axe-core found."""
        for number, name in enumerate(VIEWS, start=1):
            self._press(str(number))
            self._arrive(name)
            self._check(name)
        self._press("4")
        self._arrive("Activity")
        self._read_activity()
        self._search()
        self._filter()
        self._ask_for_help()
        return self.problems

    def _press(self, *keys: str) -> None:
        for key in keys:
            self._page.keyboard.press(key)

    def _arrive(self, name: str) -> None:
        expect(self._page.get_by_role("heading", name=name, level=1)).to_be_visible()
        expect(self._page.locator(".loading")).to_have_count(0, timeout=4 * LIMIT_MS)
        if self._page.locator("main input:focus").count():  # of a search that is empty
            self._press("Escape")

    def _check(self, name: str) -> None:
        self._page.evaluate(self._axe)
        wrong = self._page.evaluate("() => axe.run(document).then(found => found.violations)")
        if nodes := [f"{one['id']}: {node['html'][:160]}" for one in wrong for node in one["nodes"]]:
            self.problems[name] = nodes

    def _read_activity(self) -> None:
        first = self._page.locator(".op .what").first
        if first.count():
            self._press("j", "Enter")
            expect(first).to_have_attribute("aria-expanded", "true")
            self._check("an operation")
            self._press("Enter")
            expect(first).to_have_attribute("aria-expanded", "false")

    def _search(self) -> None:
        page = self._page
        self._press("/")
        page.keyboard.type(_ASKED)  # at once: the view is still on its way
        self._press("Enter")
        expect(page.get_by_label("Search memories")).to_have_value(_ASKED)
        expect(page.locator(".list :is(.hit a, .empty)").first).to_be_visible()
        self._arrive("Search")
        self._check("results")
        hits = page.locator(".list .hit a")
        texts = hits.all_inner_texts()
        if texts:
            self._press("j", "Enter")
            expect(page.locator(".side .body")).to_be_visible()
            self._arrive("Search")
            self._check("a result")
            self._press("Escape")
            expect(hits.first).to_be_focused()
        self._press("5")
        self._arrive("Health")
        self._press("2")
        self._arrive("Search")
        assert hits.all_inner_texts() == texts

    def _filter(self) -> None:
        page = self._page
        self._press("3")
        self._arrive("Memory")
        self._press("/")
        page.keyboard.type("window tuesday")
        expect(page.get_by_label("Filter by words")).to_have_value("window tuesday")
        expect(page.locator(".list .row a, .empty").first).to_be_visible()
        self._press("Escape")
        page.wait_for_timeout(500)  # until the filter is applied
        self._arrive("Memory")
        rows = page.locator(".list .row a")
        if rows.count():
            expect(rows.first).to_contain_text("window")
            self._press("j", "Enter")
            expect(page.locator(".side .body")).to_be_visible()
            self._arrive("Memory")
            self._check("a memory")
            self._press("e")
            page.keyboard.type(" indeed")
            expect(page.get_by_label("Text of the memory")).to_have_value(
                page.locator(".row.open a").inner_text() + " indeed"
            )
            self._press("Escape")
            expect(page.get_by_label("Text of the memory")).not_to_be_focused()
            page.get_by_role("button", name="Cancel").focus()
            self._press("Enter", "Escape")
            expect(rows.first).to_be_focused()

    def _ask_for_help(self) -> None:
        self._press("?")
        expect(self._page.get_by_role("dialog")).to_be_visible()
        self._check("keys")
        self._press("1", "Escape")  # no key acts behind it
        expect(self._page.get_by_role("dialog")).to_have_count(0)
        self._arrive("Memory")
