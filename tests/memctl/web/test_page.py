"""The page in a real Chromium: what people do with it, by pointer and by keyboard alone."""

from typing import Any

import pytest
from page import LIMIT_MS, Person, Tab, expect
from shelf import HOSTILE

from memoryd.client.confidence import UNLIKELY
from memoryd.client.protocol import ListGiven

pytestmark = pytest.mark.slow

VIEWS = [
    "project",
    "search",
    "memory",
    "activity",
    "health",
    *(f"health?tab={tab}" for tab in ("tiers", "jobs", "topics")),
]


def test_why_did_my_agent_not_know_it_in_three_actions_and_in_the_terminals_sentences(
    tab: Tab, morning: Any, memctl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = "rotate the signing key every 90 days"

    def steps(page: Any) -> list[str]:
        person = Person(page)
        person.press("2")  # search; the recent searches of agents are there
        person.click(page.get_by_role("link", name="when do we deploy?"))  # what the agent asked
        expect(page.locator(".hit .score").first).to_be_visible()
        person.enter(page.get_by_label("The memory that is missing"), missing)
        verdict = page.locator(".verdict")
        expect(verdict).to_contain_text("(stage reach)")
        expect(verdict).to_contain_text("it is in acme/ops, which is not seen from acme/api")
        assert person.actions == 3
        return list(page.locator(".verdict p").all_inner_texts())

    said = tab.look(steps)
    monkeypatch.setenv("MEMORYD_SOCKET", str(morning.socket))
    printed = memctl("why-not", missing, "when do we deploy?", "--namespace", "acme/api")
    assert printed.out.splitlines()[: len(said)] == said


def test_what_happened_this_morning_is_undone_in_three_actions(tab: Tab, morning: Any) -> None:
    with morning.client() as client:
        before = [operation for operation in client.operations(100) if operation.kind != "undo"]

        def steps(page: Any) -> str:
            person = Person(page)
            person.press("4")
            person.click(page.get_by_label("Select all of This morning"))
            expect(page.get_by_role("toolbar")).to_contain_text("selected")
            person.press("u")
            assert person.actions == 3
            expect(page.locator(".toast").first).to_contain_text("Undid")
            expect(page.get_by_role("toolbar")).to_have_count(0)
            return str(page.locator(".toast").first.inner_text())

        said = tab.look(steps)
        undone = [one for one in client.operations(100) if one.undone_by]
        assert len(undone) == len(before) - 7  # those of the days before stay
        assert f"Undid {len(undone)} operations" in said
        assert {one.at > 1_799_970_000 for one in undone} == {True}
        tab.look(lambda page: page.get_by_role("button", name="Undo", exact=True).last.is_visible())


def test_the_keyboard_alone_deletes_and_undoes(tab: Tab, morning: Any) -> None:
    with morning.client() as client:
        first = client.list(limit=1)[0]

        def delete(page: Any) -> None:
            page.keyboard.press("3")
            expect(page.locator(".row").first).to_be_visible()
            page.keyboard.press("j")
            expect(page.locator(".row a").first).to_be_focused()
            page.keyboard.press("#")
            expect(page.locator(".toast")).to_contain_text("Deleted 1 memory")
            expect(page.locator(f"a[href='#/m/{first.id}']")).to_have_count(0)
            expect(page.locator(".row a").first).to_be_focused()  # the next one can be deleted as well

        def undo(page: Any) -> None:
            page.keyboard.press("u")
            expect(page.locator(f".row a[href='#/m/{first.id}']")).to_have_count(1)
            expect(page.locator("button.new")).to_have_count(0)  # what a person did here is no news

        tab.look(delete)
        assert first.id not in {memory.id for memory in client.list(limit=100)}
        tab.look(undo)
        assert first.id in {memory.id for memory in client.list(limit=100)}


def test_what_happens_is_shown_at_once_and_hostile_memories_are_text_in_every_view(tab: Tab, morning: Any) -> None:
    def watch(page: Any) -> None:
        page.keyboard.press("4")
        expect(page.locator(".op").first).to_be_visible()
        count = page.locator(".op").count()
        with morning.client("acme/api") as agent:
            added = agent.add(HOSTILE, type="<b>", metadata={"tags": ["<i>x</i>"], "<u>k": HOSTILE})
            agent.observe([{"role": "user", "content": f"{HOSTILE} and some more words of a person"}], session="<b>s")
            agent.search("<script> right to left onerror", limit=3)
        expect(page.locator("button.new")).to_contain_text("new")
        assert page.locator(".op").count() == count  # the list does not jump
        page.locator("button.new").click()
        expect(page.locator(".op .what").first).to_contain_text("<script>")
        page.locator(".op .what").first.click()
        for path in (*VIEWS, f"m/{added.id}", "search?q=right+to+left+onerror", "search?q=right+to+left&tab=context"):
            page.evaluate("path => { location.hash = '/' + path; }", path)
            expect(page.locator("main h1")).to_be_visible()
            expect(page.locator(".loading")).to_have_count(0, timeout=4 * LIMIT_MS)
            if path.startswith(("m/", "search?")):
                expect(page.locator("main").get_by_text("onerror=").first).to_be_visible(timeout=4 * LIMIT_MS)
            assert page.locator("main script, main img, main i:has-text('x'), main u").count() == 0
            assert "owned" not in page.title()

    tab.look(watch)


def test_what_is_below_the_floor_is_behind_a_button(tab: Tab, morning: Any) -> None:
    with morning.client() as client:
        hits = client.explain("when do we deploy the API?", touch=False).hits
    likely = [hit for hit in hits if hit.confidence_word != UNLIKELY]
    assert 0 < len(likely) < len(hits)

    def ask(page: Any) -> None:
        page.evaluate("location.hash = '/search?q=when+do+we+deploy+the+API%3F'")
        more = page.get_by_role("button", name="less likely")
        expect(page.locator(".hit .score")).to_have_count(len(likely))
        expect(more).to_contain_text(str(len(hits) - len(likely)))
        more.click()
        expect(page.locator(".hit .score")).to_have_count(len(hits))
        expect(more).to_have_count(0)
        page.get_by_label("Search memories").fill("football match")
        page.keyboard.press("Enter")
        expect(page.locator(".list")).to_contain_text("There is no likely result.")
        expect(more).to_be_visible()

    tab.look(ask)


def test_what_is_typed_while_a_view_loads_is_text_and_no_command(tab: Tab, morning: Any) -> None:
    late: list[Any] = []

    def steps(page: Any) -> None:
        page.route("**/views/search.js", lambda route: late.append(route))  # the view does not come yet
        page.keyboard.press("4")
        expect(page.locator(".op").first).to_be_visible()
        page.reload()  # it may have been fetched by now
        expect(page.locator(".op").first).to_be_visible()
        page.locator(".op input").first.check()
        page.keyboard.press("/")
        page.keyboard.type("deploy u7#t1jx")  # each a command of some view
        page.keyboard.press("Backspace")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Search memories")).to_have_count(0)
        for route in late:
            route.continue_()
        expect(page.get_by_label("Search memories")).to_be_focused()
        expect(page.get_by_label("Search memories")).to_have_value("deploy u7#t1j")
        expect(page.locator(".list .hit").first).to_be_visible()
        page.keyboard.type(" more")  # the focus stays in the field when results come
        expect(page.get_by_label("Search memories")).to_have_value("deploy u7#t1j more")
        assert page.evaluate("document.documentElement.dataset.theme") is None

    with morning.client() as client:
        before = [operation.undone_by for operation in client.operations(100)]
        tab.look(steps)
        assert [operation.undone_by for operation in client.operations(100)] == before


def test_escape_leaves_a_field_and_a_dialog_and_nothing_acts_behind_it(tab: Tab) -> None:
    def steps(page: Any) -> None:
        page.keyboard.press("2")
        expect(page.get_by_label("Search memories")).to_be_focused()
        page.keyboard.type("deploy")
        page.keyboard.press("Escape")
        expect(page.get_by_label("Search memories")).not_to_be_focused()
        expect(page.get_by_label("Search memories")).to_have_value("deploy")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.keyboard.press("3")
        page.keyboard.press("t")
        expect(page.get_by_role("heading", name="Search")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.keyboard.press("3")
        expect(page.get_by_role("heading", name="Memory")).to_be_visible()
        assert page.evaluate("document.documentElement.dataset.theme") is None

    tab.look(steps)


@pytest.mark.parametrize("width", [1280, 400])
def test_a_result_opens_beside_the_results_which_are_there_when_it_is_closed(tab: Tab, width: int) -> None:
    def steps(page: Any) -> None:
        page.set_viewport_size({"width": width, "height": 800})
        page.keyboard.press("/")
        page.keyboard.type("when do we move the session cache")
        page.keyboard.press("Enter")
        hits = page.locator(".list .hit a")
        expect(hits.first).to_be_visible()
        texts = hits.all_inner_texts()
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        page.keyboard.press("j")
        expect(hits.nth(1)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".side .body")).to_contain_text(texts[1].strip()[:40])
        expect(page.locator(".side .verdict")).to_contain_text("Found, ")
        assert hits.first.is_visible() == (width == 1280)
        page.keyboard.press("Escape")
        expect(hits.nth(1)).to_be_focused()
        assert hits.all_inner_texts() == texts
        page.keyboard.press("3")
        expect(page.get_by_role("heading", name="Memory")).to_be_visible()
        page.keyboard.press("2")  # as it was left
        expect(hits.first).to_be_visible()
        assert hits.all_inner_texts() == texts

    tab.look(steps)


def test_the_filter_leaves_the_memories_with_its_words_and_takes_all_keys(tab: Tab) -> None:
    def steps(page: Any) -> None:
        page.keyboard.press("3")
        page.keyboard.press("/")
        page.keyboard.type("deploy win 1")
        expect(page.get_by_label("Filter by words")).to_have_value("deploy win 1")
        expect(page.locator(".row")).to_have_count(1)
        expect(page.locator(".row")).to_contain_text("The deploy window is Tuesday at 10.")
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(page.locator(".side .body")).to_contain_text("The deploy window is Tuesday at 10.")
        page.keyboard.press("Escape")
        page.keyboard.press("2")
        expect(page.get_by_label("Search memories")).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.press("3")  # as it was left
        expect(page.get_by_label("Filter by words")).to_have_value("deploy win 1")
        expect(page.locator(".row")).to_have_count(1)
        page.get_by_label("Filter by words").fill("no such words")
        expect(page.locator(".empty")).to_contain_text("No memory matches.")

    tab.look(steps)


def test_what_an_agent_was_given_is_taken_back_and_never_comes_again(tab: Tab, morning: Any) -> None:
    with morning.client() as client:
        [session] = client.call(ListGiven()).sessions
        before = len(client.list(limit=100))

        def take_back(page: Any) -> None:
            page.evaluate("location.hash = '/project?ns=acme/api'")
            lines = page.locator(".said")
            expect(lines).to_have_count(len(session.lines))
            expect(page.get_by_role("region", name="What agents were given")).to_contain_text("Claude Code")
            rated = lines.filter(has=page.get_by_role("button", name="Useful")).first
            rated.get_by_role("button", name="Useful").click()
            expect(page.locator(".toast").last).to_contain_text("Rated as useful")
            rated.get_by_role("button", name="Wrong").click()
            expect(page.locator(".toast").last).to_contain_text("Deleted as wrong")
            expect(lines).to_have_count(len(session.lines) - 1)
            page.keyboard.press("u")
            expect(lines).to_have_count(len(session.lines))
            lines.first.get_by_role("button", name="Never again").click()
            expect(page.get_by_role("region", name="Never again")).to_be_focused()
            page.keyboard.press("Escape")
            expect(page.get_by_role("region", name="Never again")).to_have_count(0)
            lines.first.get_by_role("button", name="Never again").click()
            page.get_by_role("button", name="Erase it for good").click()
            expect(page.locator(".toast").last).to_contain_text("Erased for good")
            expect(page.locator(".toast").last.get_by_role("button", name="Undo")).to_have_count(0)
            expect(lines).to_have_count(len(session.lines) - 1)

        tab.look(take_back)
        assert len(client.list(limit=100)) == before - (session.lines[0].tier != "L0")
        assert session.lines[0].id not in {line.id for one in client.call(ListGiven()) for line in one.lines}


def test_what_holds_in_a_project_is_added_confirmed_edited_and_ended(tab: Tab, morning: Any) -> None:
    with morning.client("acme/api") as client:

        def steps(page: Any) -> None:
            page.evaluate("location.hash = '/project?ns=acme/api'")
            holds = page.get_by_role("region", name="What holds now")
            expect(holds).to_contain_text("Lessons (1)")
            page.get_by_label("Add a rule, decision … for acme/api").fill("Never deploy on Fridays")
            page.keyboard.press("Enter")
            rule = holds.locator("article", has_text="Never deploy on Fridays")
            expect(rule).to_contain_text("person")
            expect(rule.get_by_role("button", name="Confirm")).to_have_count(0)
            lesson = holds.locator("article", has_text="Integration tests fail")
            lesson.get_by_role("button", name="Confirm").click()
            expect(lesson).to_contain_text("agent, confirmed")
            rule.locator("a").focus()
            page.keyboard.press("e")
            page.keyboard.type(", nor before holidays")
            page.keyboard.press("Control+Enter")
            expect(rule).to_contain_text("Never deploy on Fridays, nor before holidays")
            rule.locator("a").focus()
            page.keyboard.press("p")
            expect(holds).to_contain_text("Always shown (")
            lesson.get_by_role("button", name="Over").click()
            expect(lesson).to_have_count(0)
            page.keyboard.press("u")
            expect(lesson).to_have_count(1)

        tab.look(steps)
        rule = next(one for one in client.list(limit=50, type=["rule"]) if "Fridays" in one.content)
    assert (rule.content, rule.origin, rule.pinned) == ("Never deploy on Fridays, nor before holidays", "person", True)


def test_what_seems_changed_is_settled_by_one_click_which_is_undone(tab: Tab, morning: Any) -> None:
    with morning.client("acme/api") as client:
        before = len(client.list(limit=50))

        def steps(page: Any) -> None:
            page.evaluate("location.hash = '/project?ns=acme/api'")
            changed = page.get_by_role("region", name="To settle")
            pair = changed.locator("article", has_text="deploy window")
            expect(pair).to_contain_text("The deploy window is Tuesday at 9")
            pair.get_by_role("button", name="The newer one holds").or_(
                pair.get_by_role("button", name="The later one holds")
            ).first.click()
            expect(pair).to_have_count(0)
            page.keyboard.press("u")
            expect(pair).to_have_count(1)
            pair.get_by_role("button", name="Both hold").click()
            expect(pair).to_have_count(0)

        tab.look(steps)
        assert len(client.list(limit=50)) == before


def test_what_people_come_for_is_three_clicks_away_and_named(tab: Tab, morning: Any) -> None:
    def steps(page: Any) -> None:
        project = page.get_by_role("link", name="acme/api", exact=True)

        def begin() -> Person:
            page.evaluate("location.hash = '/project?ns='")
            person = Person(page)
            person.click(project)
            return person

        person = begin()  # what holds in a project
        expect(page.get_by_role("region", name="What holds now")).to_contain_text("Lessons (1)")
        expect(page.get_by_role("heading", name="What agents were given today")).to_be_visible()
        person.click(page.get_by_role("link", name="What changed last week"))
        expect(page.get_by_label("When")).to_have_value("last week")
        expect(page.locator(".empty")).to_be_visible()
        page.get_by_label("When").select_option("the last 30 days")
        expect(page.locator(".op").first).to_be_visible()
        assert person.actions == 2
        person = begin()
        settle = page.get_by_role("region", name="To settle")
        person.click(settle.get_by_role("button", name="Both hold").first)
        expect(page.locator(".toast").last).to_be_visible()
        person.enter(page.get_by_label("Add a rule, decision … for acme/api"), "Never deploy on Fridays")
        expect(page.get_by_role("region", name="What holds now")).to_contain_text("Rules (1)")
        assert person.actions == 3

    tab.look(steps)


def test_activity_is_shown_of_the_days_between_two_dates(tab: Tab, morning: Any) -> None:
    def steps(page: Any) -> None:
        page.keyboard.press("4")
        every = page.locator(".op")
        expect(every.first).to_be_visible()
        page.get_by_label("from", exact=True).fill("2027-01-14")
        page.get_by_label("to", exact=True).fill("2027-01-14")
        expect(page.locator(".day h2", has_text="This")).to_have_count(0)
        expect(page.locator(".day h2").first).to_contain_text("Yesterday")
        expect(page.get_by_label("When")).to_have_value("yesterday")
        page.get_by_label("to", exact=True).fill("")
        expect(page.locator(".day h2").first).to_contain_text("This")

    tab.look(steps)


def test_a_session_opens_into_its_conversation(tab: Tab) -> None:
    def steps(page: Any) -> None:
        page.evaluate("location.hash = '/project?ns=acme/api'")
        sessions = page.get_by_role("region", name="Last sessions")
        expect(sessions).to_contain_text("Please move the session cache")
        expect(sessions).to_contain_text("The move is planned for Tuesday")
        sessions.get_by_role("button").first.click()
        expect(sessions.locator(".hit")).to_have_count(4)  # "ok" was not kept

    tab.look(steps)
