"""Credentials that a name announces from further away, that are encoded, or that hide what nobody sees."""

from collections import Counter

import pytest
from announced_examples import (
    ANNOUNCED,
    EC,
    GITHUB,
    HARMLESS,
    LONG,
    OPENAI,
    PICTURE,
    PLAIN,
    PUBLIC,
    SPECIAL,
    STRONG,
    WORDY,
    encoded,
    hidden,
)

from memoryd.client.credentials import allow_list, find, redact, redact_tree


@pytest.mark.parametrize(("text", "value"), ANNOUNCED)
def test_what_a_name_announces_is_taken_out(text: str, value: str) -> None:
    kinds: Counter[str] = Counter()
    assert value not in redact(text, kinds)
    assert kinds


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_announced_by_nothing_stays(text: str) -> None:
    assert redact(text) == text


def test_words_after_a_spaced_sign_may_be_the_difference_of_two_names() -> None:
    """The one of the examples that is kept: in code it is an expression."""
    text = f"spring.datasource.password.primary = {WORDY}"
    assert redact(text) == text


def test_a_table_with_the_line_ends_of_windows_is_read() -> None:
    text = f"| user | password |\r\n|---|---|\r\n| bob | {WORDY} |\r\nuser,password\r\neve,{PLAIN}\r\n"
    assert WORDY not in redact(text)
    assert PLAIN not in redact(text)


def test_only_the_value_goes() -> None:
    table = (
        f"| user | password | port |\n|---|---|---|\n| bob | {WORDY} | 5432 |\n| eve | `{PLAIN}` | 22 |\n\nThat is all."
    )
    left = redact(table).replace("[secret: password]", "X")
    assert left == "| user | password | port |\n|---|---|---|\n| bob | X | 5432 |\n| eve | `X` | 22 |\n\nThat is all."
    assert (
        redact(f"The password is:\n```\n{STRONG}\n```\nDone.")
        == "The password is:\n```\n[secret: password]\n```\nDone."
    )
    left = redact(f'variable "db_password" {{ default = "{STRONG}" }}')
    assert left == 'variable "db_password" { default = "[secret: password]" }'
    assert redact(f"client-key-data: {EC}\nname: a\n") == "client-key-data: [secret: private key]\nname: a\n"
    assert redact(f'gh secret set A --body "{WORDY}" -R b/c') == 'gh secret set A --body "[secret: secret]" -R b/c'


@pytest.mark.parametrize("lead", ["", "\n", "a\n"])
def test_a_private_key_in_base64_is_found_wherever_it_begins(lead: str) -> None:
    text = f"key: {encoded('RSA ' + 'PRIVATE KEY', lead)}"
    assert [one.kind for one in find(text)] == ["private key"]
    assert len(redact(text)) < 40


@pytest.mark.parametrize("mark", "\u00ad\u034f\u180e\u200b\u200c\u200d\u200e\u202e\u2060\u2064\ufe0f\ufeff\U000e0041")
def test_what_nobody_sees_hides_nothing(mark: str) -> None:
    for at in range(1, len(GITHUB)):
        assert (
            redact(f"push {mark}with {hidden(GITHUB, mark, at)}{mark} now")
            == f"push {mark}with [secret: GitHub token]{mark} now"
        )
    everywhere = mark.join(OPENAI)
    assert redact(f"key {everywhere}.") == "key [secret: OpenAI key]."
    assert redact(f"pass{mark}word: {hidden(STRONG, mark, 3)}") == f"pass{mark}word: [secret: password]"
    assert redact(f"a{mark}b and 12{mark}34") == f"a{mark}b and 12{mark}34"


def test_the_allow_list_reads_what_is_seen() -> None:
    text = f"password = {hidden(PLAIN, chr(0x200B), 4)}"
    assert redact(text, allowed=allow_list([PLAIN])) == text


def test_values_of_a_tree_under_longer_names_and_beside_a_user_go() -> None:
    tree = {"prod-password": WORDY, "MY_SECRET_KEY_2": LONG, "auth": {"user": "bob", "pass": SPECIAL}}
    tree |= {f"pass{chr(0x200B)}word": STRONG, "spring.datasource.password.primary": PLAIN}
    assert set(Counter(str(value) for value in _leaves(redact_tree(tree, Counter())))) == {
        "[secret: password]",
        "[secret: secret]",
        "bob",
    }


def test_values_of_a_tree_under_names_about_credentials_stay() -> None:
    tree = {
        "password_hash": "a1b2c3d4",
        "tokenizer": LONG,
        "secret_name": "db-prod-2",
        "pass": "12-of-14",
        "token_type": "b2",
    }
    tree |= {"keyboard": LONG, "tls.crt": PUBLIC, "image": PICTURE, "password-policy": "min12chars"}
    assert redact_tree(tree, Counter()) == tree


def _leaves(value: object) -> list[object]:
    return [leaf for item in value.values() for leaf in _leaves(item)] if isinstance(value, dict) else [value]


@pytest.mark.parametrize(
    "text",
    [
        f"DbPassword:\n  Type: String\nZone:\n  Default: {STRONG}\n",  # of another parameter
        f'variable "db_password" {{}}\nvariable "zone" {{ default = "{STRONG}" }}',
        f"def login(password, default='{STRONG}'): ...",  # a parameter beside it
        f"| password |\n| {STRONG} |\n",  # no table: no line divides head and rows
        f"password,port\n{STRONG}\n",  # a row with fewer cells
        f"the password\n{STRONG} was the name of the release\n",
        f"password\n{STRONG}\n",  # nothing says that the line is one
        f"bypass: {STRONG}\nuser: bob\n",
    ],
)
def test_what_belongs_to_something_else_stays(text: str) -> None:
    assert redact(text) == text
