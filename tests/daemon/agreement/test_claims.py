"""What sentences do: state, ask, order, guess, take back."""

from each import each
from memoryd.daemon.agreement import claims
from memoryd.daemon.language.sentences import is_denial


@each(
    "text",
    [
        "The digest is computed over the raw body, in hooks/signature.py.",
        "Done: branch dedupe-events, one commit, the PR is open.",
        "Eingebaut in hs_scale.c; der Offset liegt im NVS.",
        "Les niveaux sont en mètres au-dessus du zéro hydrographique.",
        "已删,APK 从 27.1MB 回到 18.9MB。",
        "When the buffer is full, the oldest entry goes.",
    ],
)
def test_what_an_agent_states_is_a_statement(text: str) -> None:
    assert claims.list_statements("assistant", text) == (text,)


@each(
    "text",
    [
        "Probably the pictures: they are decoded at full size.",
        "That smells of the radio staying in standby.",
        "Ich vermute, der Treiber ist zu alt.",
        "C'est probablement l'heure d'été.",
        "应该是手机上缺中文字体。",
        "I do not know; nothing is written here.",
        "Je ne sais pas encore ; il faudrait des relevés.",
        "Row counts agree. Shall I remove the files?",
        "The three steps are:",
    ],
)
def test_guesses_questions_and_announcements_are_none(text: str) -> None:
    assert claims.list_statements("assistant", text) == ()


@each(
    "text",
    [
        "commit this and open a pull request",
        "ok do that. and does the carrier send events for returns",
        "mach das",
        "nickel. ajoute un test",
        "what address do i give it",
        "thanks, bye",
    ],
)
def test_what_a_user_asks_for_is_no_statement(text: str) -> None:
    assert claims.list_statements("user", text) == ()


def test_a_user_states_too_and_a_tool_never_does() -> None:
    said = "sealed-secrets then. that is decided"
    assert claims.list_statements("user", said) == ("sealed-secrets then.", "that is decided")
    assert claims.list_statements("tool", said) == ()


@each(
    "text",
    [
        "Not 5432: the override publishes Postgres on 5433.",
        "So it wasn't the radio.",
        "Der Pull-up ist es nicht. Das Flash war es.",
        "Non, ce n'est pas l'heure d'été.",
        "不是字体缺失,刚才我猜错了。",
        "The index is there and used; so that was wrong.",
    ],
)
def test_a_message_that_takes_back_what_was_said_is_known(text: str) -> None:
    assert is_denial(text)
    assert claims.is_taken_back([("user", "the disk has 200 GB left"), ("assistant", text)])
    assert not claims.is_taken_back([("user", "is it the disk?"), ("assistant", text)])
    assert not claims.is_taken_back([("user", "ok"), ("assistant", "ok"), ("assistant", text)])


@each(
    "text",
    [
        *("Not today, tomorrow.", "Done, nothing else is open.", "Nothing is lost.", "Notes:"),
        *("no then. We stay with class A", "No problem, class A it is.", "ok, no need for more", "nein dann nicht"),
    ],
)
def test_other_messages_take_nothing_back(text: str) -> None:
    assert not is_denial(text)


LONG = """I've set up the newsletter tool. Summary:

## What was done

| file | lines |
|---|---|
| base.mjml | 40 |

**Changes:**
- `templates/base.mjml` is the layout; HTML mails are rendered with MJML
- It may be that older mail programs need tables

There are no tests yet. All mails are in English.

Would you like me to add the unsubscribe link next?"""


def test_of_a_long_answer_each_paragraph_and_point_is_judged_by_itself() -> None:
    assert claims.list_statements("assistant", LONG) == (
        "I've set up the newsletter tool.",
        "`templates/base.mjml` is the layout; HTML mails are rendered with MJML",
        "All mails are in English.",
    )


@each(
    "text",
    [
        "There is no database yet.",
        "None is set up yet.",
        "Nothing is defined for that.",
        "I don't see any model in the repository.",
        "Es gibt noch keine Datenbank.",
        "Il n'y a pas encore de base de données.",
    ],
)
def test_what_was_not_there_or_not_known_is_no_statement(text: str) -> None:
    assert claims.list_statements("assistant", text) == ()


def test_what_is_still_to_be_done_is_seen() -> None:
    open_ones = ("Open: the mail to the partners is not written yet.", "Next step: the index.", "Das ist noch offen.")
    assert [one for one in open_ones if not claims.is_open(one)] == []
    assert [one for one in ("The import runs at night now.", "All tests pass.") if claims.is_open(one)] == []
