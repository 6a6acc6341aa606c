"""Whether a text ends with a question, and whether asking is all that it does."""

from each import each
from memoryd.daemon.language.questions import asks, knows_nothing, only_asks
from memoryd.daemon.language.sentences import ends_with_question


@each(
    "text",
    [
        "What is the staging port?",
        "Farid: what is the staging port?",
        "hey, what port was it again?",
        "Anything else?",
        "which port",
        "what port is staging on",
        "Remind me, what port did we put staging on?",
        "tell me again who waters the plants",
        "I mean what purpose does .exporting serve",
        "ich meine, wann kommt app.log weg",
        "I forgot. Where did we put the spare key?",
        "Morning everybody! Can you all hear me?",
        "Und wer kommt eigentlich ins Rechenzentrum rein?",
        "welcher port war das bei der testumgebung",
        "wie lange dauert der build",
        "on fait comment ?",
        "打印服务器在哪个端口",
        "多少钱？",
        "壊れましたか。",
        "棚卸しはいつでしたっけ",
    ],
)
def test_a_text_may_do_nothing_but_ask(text: str) -> None:
    assert only_asks(text)


@each(
    "text",
    [
        "",
        "Staging listens on 8443.",
        "I moved staging to 8443. Works for you?",
        "The import gets killed on the small worker, every night. Can you have a look?",
        "Then all five are on 1.32. Anything wrong with node2?",
        "I read importer.py. Shall I go on?",
        "What a day",
        "What we need is a second shelf",
        "When the build is red, call Tom",
        "which is why we left",
        "was fixed yesterday",
        "How nice",
        "Since yesterday the new address of staging is a longer name: see below. Can you all reach it from the office?",
        "I mean it",
        "what is it for. It is for the build",
        "没什么",
        "好的，我改一下配置",
        "わかりました",
        f"{'It rains. ' * 50}Does it?",
    ],
)
def test_a_text_that_states_something_does_not_only_ask(text: str) -> None:
    assert not only_asks(text)


@each(
    ("text", "ends"),
    [
        ("It rains. Does it?", True),
        ("完了しましたか。", True),
        ('"Done?"', True),
        ("which port", False),
        ("Done.", False),
    ],
)
def test_a_question_is_at_the_end_of_a_text(text: str, ends: bool) -> None:
    assert ends_with_question(text) is ends


def test_a_text_may_ask_before_its_end() -> None:
    assert all(map(asks, ["Does it rain? I forgot.", "which port", "It rains. Does it?"]))
    assert not any(map(asks, ["Make the gateway listen on port 9443.", "It rains.", ""]))


@each(
    "text",
    [
        "I do not know that; nothing in the repository says it.",
        "I could not find that anywhere in the code, so I cannot say.",
        "I have no information about this.",
        "I don't have any information on that, and I found nothing about it.",
        "I don't know.",
        "Ada: I don't know where it is",
        "Sorry, I can't find it.",
        "No idea, sorry!",
        "Unfortunately I cannot say: no mention of it in the docs.",
        "That is not documented anywhere.",
        "Das weiß ich leider nicht.",
        "Keine Ahnung",
        "Je ne sais pas.",
        "我不知道。",
    ],
)
def test_a_text_may_say_only_that_somebody_does_not_know(text: str) -> None:
    assert knows_nothing(text)


@each(
    "text",
    [
        "",
        "Nothing.",
        "There is no limit.",
        "Nothing is lost.",
        "I don't know Ada.",
        "I do not see a problem.",
        "I cannot recommend that.",
        "I can't find the bug in limiter.py.",
        "I don't know, port 9090 I think.",
        "I don't know who wrote it, but Ada does.",
        "I don't know yet. Ask Ben, he runs the importer.",
        f"I don't know. {'It rains. ' * 50}",
    ],
)
def test_a_text_that_says_something_knows_something(text: str) -> None:
    assert not knows_nothing(text)
