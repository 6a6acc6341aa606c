"""Summaries by rules: whole sentences of what was decided, done and left open; no request, guess or tool output."""

import pytest

from memoryd.daemon.language import digesting

SESSION = [
    ("user", "The importer is slow. Please find out why, and commit it"),
    ("assistant", "I think the index on orders.created_at is missing."),
    ("tool", "$ explain analyze: Index Scan using ix_orders_created_at, 2741 ms"),
    ("assistant", "The index is used. The importer reads 30,000 rows with OFFSET and throws them away..."),
    ("user", "We decided to page by cursor from now on. Can you do that?"),
    ("assistant", "I changed importer.py: it pages by cursor and takes 3 ms. You can try it now."),
    ("user", "Great, thanks, see you tomorrow!"),
    ("assistant", "Still open: the web frontend uses the old pages."),
]


def summarise(*turns: tuple[str, str], previous: str = "", max_tokens: int = 200) -> list[str]:
    return digesting.summary(turns, previous, max_tokens).splitlines()


def test_a_summary_says_what_was_found_decided_done_and_left_open_a_sentence_a_line() -> None:
    assert summarise(*SESSION) == [
        "The importer reads 30,000 rows with OFFSET and throws them away...",
        "We decided to page by cursor from now on.",
        "I changed importer.py: it pages by cursor and takes 3 ms.",
        "Still open: the web frontend uses the old pages.",
    ]


def test_what_an_assistant_stated_last_is_kept_before_all_else() -> None:
    assert summarise(*SESSION, max_tokens=15) == [SESSION[-1][1]]
    assert summarise(("assistant", "The rest is left for the summer.")) == ["The rest is left for the summer."]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The daemon listens on port 8443 since 2 May.", "9443, not 8443: that was changed on 3 May."),
        ("The fault of 3 May is in the worker.", "It was not the worker: the queue was full on 3 May."),
        (
            "Der Fehler vom 3. Mai liegt am Treiber.",
            "Es ist nicht der Treiber, Version 7.94 hat ihn am 3. Mai behoben.",
        ),
    ],
)
def test_what_a_later_turn_says_it_is_not_is_left_out(earlier: str, later: str) -> None:
    turns = [("assistant", earlier), ("user", later), ("assistant", "Version 0.4.1 is built for 4 May.")]
    assert earlier not in summarise(*turns)
    assert earlier in summarise(turns[0], turns[2])


@pytest.mark.parametrize(
    "guess",
    [
        "That is most likely the worker with max_tries=3.",
        "Ich vermute, der Treiber 7.94 ist zu alt.",
        "C'est probablement l'heure d'été du 3 mai.",
        "应该是手机上缺中文字体,把 Noto Sans SC 打包就行了。",
        "The registry should listen on port 5000.",
    ],
)
def test_a_guess_is_in_no_summary(guess: str) -> None:
    assert summarise(("assistant", guess)) == []


def test_languages_without_blanks_have_sentences_too() -> None:
    said = "已删,APK 从 27.1MB 回到 18.9MB。没做完的:卡片详情页还没写。"
    assert summarise(("assistant", said)) == ["已删,APK 从 27.1MB 回到 18.9MB。", "没做完的:卡片详情页还没写。"]


def test_no_sentence_is_cut() -> None:
    dotted = "We dedupe by a unique index and INSERT ... ON CONFLICT DO NOTHING in version 0003."
    long = "The port of the staging database is " + "really " * 80 + "5433."
    assert summarise(("assistant", dotted), ("assistant", long)) == [dotted]


def test_what_a_session_came_to_before_stays_in_its_summary() -> None:
    before = "We decided to page by cursor from now on."
    assert summarise(("assistant", "Version 0.4.1 is built for 4 May."), previous=before) == [
        before,
        "Version 0.4.1 is built for 4 May.",
    ]


def test_a_summary_keeps_to_its_size_and_says_nothing_twice() -> None:
    said = [("user", f"We decided on rule number {number} for the harbour cranes in May.") for number in range(50)]
    text = digesting.summary([*said, *said], "", 100)
    assert 0 < len(text) <= 400
    assert len(set(text.splitlines())) == len(text.splitlines())


@pytest.mark.parametrize("turns", [[], [("user", "ok")], [("user", "")], [("tool", "x" * 5)]])
def test_nothing_to_tell_is_no_summary(turns: list[tuple[str, str]]) -> None:
    assert digesting.summary(turns, "", 100) == ""
