"""Credentials are taken out of texts and trees, and what only looks like one stays."""

import base64
import re
import time
import tomllib
from collections import Counter
from importlib.resources import files

import pytest
from credential_examples import HARMLESS, HOLDING, unmark, write
from hypothesis import given
from hypothesis import strategies as st

from each import each
from memoryd.client.credentials import allow_list, describe_kinds, find, named, redact, redact_tree
from memoryd.client.credentials.rules import RULES, CredentialMatch
from memoryd.client.credentials.secret_names import TellingName

TEXTS = [unmark(marked) for _, marked in HOLDING]
TOKEN = write("github_pat_{m22}_{m40}")
STRONG, WORDY, LONG = write("Xk9mP2¦vQ7rT4wZ"), write("Hunter2¦-zebra"), write("{m32}")


def test_each_credential_goes_and_the_rest_stays() -> None:
    wanted = [re.sub("«[^»]*»", f"[secret: {kind}]", marked) for kind, marked in HOLDING]
    misses = [(text, redact(text)) for text, left in zip(TEXTS, wanted, strict=True) if redact(text) != left]
    assert misses == []


def test_what_only_looks_like_a_credential_stays() -> None:
    assert [(text, redact(text)) for text in HARMLESS if redact(text) != text] == []


def test_every_rule_has_an_example_and_says_where_it_is_documented() -> None:
    texts = [*TEXTS, f"client-key-data: {encode_key('EC')}"]
    assert [rule.id for rule in RULES if not any(map(rule.pattern.search, texts)) or len(rule.description) < 6] == []


def test_every_rule_has_keywords_of_which_each_example_has_one() -> None:
    """A rule that is tried in the text begins with a keyword; a keyword that is not in the pattern finds nothing."""
    for rule in RULES:
        for match in (match for text in TEXTS for match in rule.pattern.finditer(text) if rule.judge(match)):
            has = match.group().lower() if rule.folded else match.group()
            if "text" in rule.tags:
                assert has.startswith(rule.keywords), rule.id
            else:
                assert any(keyword in has for keyword in rule.keywords), rule.id


def test_a_rule_has_the_fields_of_gitleaks_alone() -> None:
    rows = tomllib.loads(files("memoryd.client.credentials").joinpath("rules.toml").read_text("utf-8"))["rules"]
    assert set().union(*rows) <= {"id", "description", "regex", "keywords", "entropy", "tags"}
    assert len(rows) == len(RULES) > 100


def test_what_was_redacted_is_not_redacted_again() -> None:
    assert [text for text in TEXTS if redact(redact(text)) != redact(text)] == []


def test_a_credential_is_found_within_other_text() -> None:
    missed = []
    for _, marked in HOLDING:
        kinds: Counter[str] = Counter()
        redact(f"Before the release we talked.\n{unmark(marked)}\nThat was all of it.", kinds)
        missed += [marked] * (kinds.total() != marked.count("«"))
    assert missed == []


def test_several_credentials_of_a_text_are_all_taken_out_and_counted() -> None:
    kinds: Counter[str] = Counter()
    texts = [text for text in TEXTS if "\n" not in text][10:20]
    redacted = redact("\n".join(texts), kinds)
    assert kinds.total() == redacted.count("[secret: ") == 10


def test_a_text_keeps_its_lines_where_that_is_asked_for() -> None:
    key = next(text for text in TEXTS if text.startswith("-----BEGIN RSA"))
    text = f"one\n{key}\nlast"
    redacted = redact(text, keep_lines=True)
    assert redacted.split("\n")[-1] == "last"
    assert redacted.count("\n") == text.count("\n")


def test_what_the_allow_list_matches_whole_stays() -> None:
    text = "password = hunter2 and DB_PASSWORD=hunter23"
    assert redact(text, allowed=allow_list(["hunter2"])) == "password = hunter2 and DB_PASSWORD=[secret: password]"
    assert redact(text, allowed=allow_list(["hunter\\d", "hunter23"])) == text


def test_an_empty_allow_list_lets_nothing_through() -> None:
    assert allow_list([]) is None


def test_values_of_a_tree_are_judged_by_their_keys_and_the_tree_keeps_its_shape() -> None:
    kinds: Counter[str] = Counter()
    tree = {"password": "hunter2", "deep": [{"api_key": TOKEN}, 3, None], "note": "password = hunter2", "token": 7}
    made = redact_tree(tree, kinds)
    assert made == {
        "password": "[secret: password]",
        "deep": [{"api_key": "[secret: GitHub token]"}, 3, None],
        "note": "password = [secret: password]",
        "token": 7,
    }
    assert kinds == {"password": 2, "GitHub token": 1}


def test_a_key_of_a_tree_that_is_a_credential_is_taken_out_too() -> None:
    assert redact_tree({TOKEN: 1}, Counter()) == {"[secret: GitHub token]": 1}


def test_plain_values_beside_a_telling_key_stay() -> None:
    tree = {"password": "required", "token": "string", "secret": "", "keys": ["a", "b"], "api_key": "from the keyring"}
    assert redact_tree(tree, Counter()) == tree


def encode_key(kind: str, lead: str = "") -> str:
    """Return a file with a private key of this kind in base64."""
    body = base64.b64encode(bytes(range(7, 187))).decode()
    lines = "\n".join(body[start : start + 64] for start in range(0, len(body), 64))
    head, tail = (f"-----{edge} {kind} PRIVATE {'KEY'}-----" for edge in ("BEGIN", "END"))
    return base64.b64encode(f"{lead}{head}\n{lines}\n{tail}\n".encode()).decode()


@each("kind", ["RSA", "EC", "OPENSSH", "ENCRYPTED"])
def test_a_private_key_in_base64_is_found_however_it_is_written(kind: str) -> None:
    key = encode_key(kind)
    wrapped = "\n    ".join(key[start : start + 76] for start in range(0, len(key), 76))
    for text in (
        f"client-key-data: {key}\nname: a\n",
        f'{{"data": {{"tls.key": "{key}"}}}}',
        f"echo {key} | base64 -d > a.pem",
        f"tls.key: |\n    {wrapped}\n",
    ):
        assert redact(text) == text.replace(key, "[secret: private key]").replace(wrapped, "[secret: private key]")
    url_safe = key.translate(str.maketrans("+/", "-_")).rstrip("=")
    assert (
        redact(f"the signing thing is {url_safe} by the way") == "the signing thing is [secret: private key] by the way"
    )
    for lead in ("\n", "a\n"):  # base64 of other characters
        assert len(redact(f"key: {encode_key(kind, lead)}")) < 40


def test_a_table_with_the_line_ends_of_windows_is_read() -> None:
    text = f"| user | password |\r\n|---|---|\r\n| bob | {WORDY} |\r\nuser,password\r\neve,{STRONG}\r\n"
    assert redact(text) == text.replace(WORDY, "[secret: password]").replace(STRONG, "[secret: password]")


@each("mark", "\u00ad\u034f\u180e\u200b\u200c\u200d\u200e\u202e\u2060\u2064\ufe0f\ufeff\U000e0041")
def test_what_nobody_sees_hides_nothing(mark: str) -> None:
    for at in range(1, len(TOKEN)):
        text = f"push {mark}with {TOKEN[:at]}{mark}{TOKEN[at:]}{mark} now"
        assert redact(text) == f"push {mark}with [secret: GitHub token]{mark} now"
    assert redact(f"key {mark.join(TOKEN)}.") == "key [secret: GitHub token]."
    assert redact(f"pass{mark}word: {STRONG[:3]}{mark}{STRONG[3:]}") == f"pass{mark}word: [secret: password]"
    assert redact(f"a{mark}b and 12{mark}34") == f"a{mark}b and 12{mark}34"


def test_the_allow_list_reads_what_is_seen() -> None:
    text = f"password = {STRONG[:4]}\u200b{STRONG[4:]}"
    assert redact(text, allowed=allow_list([STRONG])) == text


def test_values_of_a_tree_under_longer_names_and_beside_a_user_go() -> None:
    tree = {"prod-password": WORDY, "MY_SECRET_KEY_2": LONG, "auth": {"user": "bob", "pass": STRONG}}
    tree |= {"pass\u200bword": STRONG, "spring.datasource.password.primary": STRONG}
    assert redact_tree(tree, Counter()) == {
        "prod-password": "[secret: password]",
        "MY_SECRET_KEY_2": "[secret: secret]",
        "auth": {"user": "bob", "pass": "[secret: password]"},
        "pass\u200bword": "[secret: password]",
        "spring.datasource.password.primary": "[secret: password]",
    }


def test_values_of_a_tree_under_names_about_credentials_stay() -> None:
    tree = {"password_hash": "a1b2c3d4", "tokenizer": LONG, "secret_name": "db-prod-2", "pass": "12-of-14"}
    tree |= {"token_type": "b2", "keyboard": LONG, "password-policy": "min12chars"}
    assert redact_tree(tree, Counter()) == tree


def test_kinds_are_told_in_a_few_words() -> None:
    assert describe_kinds({"password": 1, "GitHub token": 2}) == "2 GitHub tokens, 1 password"


@given(st.text(max_size=400))
def test_any_text_is_redacted_without_an_error_and_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.text(max_size=80), st.sampled_from(TEXTS), st.text(max_size=80))
def test_a_credential_is_found_whatever_stands_around_it(before: str, key: str, after: str) -> None:
    assert find(f"{before}\n\n{key}\n\n{after}")


KEY_BEGINS = "-----BEGIN PRIVATE KEY-----"


@pytest.mark.slow
@each(
    "part",
    [
        *(KEY_BEGINS, f"{KEY_BEGINS}Version: ", f"{KEY_BEGINS}\nVersion: 1\n", f"\nVersion: {KEY_BEGINS}"),
        *("password = ", "password=", "password>", "pwd=$1 ", "token=" * 2, "api_key=a1", "key=a", "sk-"),
        *(
            "password:\n",
            "password is\n",
            "password,a\n",
            "a,password\n",
            "password|a\n-|-\n",
            "password|",
            "\npass: user:1",
        ),
        *(
            "| password |\n|---|\n",
            "password {",
            'variable "password" { default = ',
            "password --value ",
            "\u200b",
            "a\u200b",
        ),
        *(
            "LS0tLS1CRUdJTi",
            "LS0tLS1CRUdJTiBQUklWQVRFIEtFW",
            "echo a1b2 | ",
            "secret set ",
            "secret set --body ",
            "a1b2\n",
        ),
        *("a:b@://", "eyJ" * 5 + ".", "-eyJ1", "eyJaaaaaaaaaaaa1.eyJaaaaaaaa.", "curl -u ", "curl -u a:", " -u a:b"),
    ],
)
def test_no_text_takes_long(part: str) -> None:
    small, large = part * 2_000, part * 20_000
    times = []
    for text in (small, large):
        began = time.process_time()
        find(text)
        times.append(time.process_time() - began)
    assert times[1] < 40 * times[0] + 0.5  # ten times the text: not a hundred times the work


@each("part", ["Version: ", "\nVersion: x", "Version: 12345 ", ", " * 8 + "a" * 15 + " Comment: "])
def test_the_headers_of_a_key_without_lines_take_no_time(part: str) -> None:
    assert find(KEY_BEGINS + part * 2_000) == []


@each("between", ["-----", "", "\n", "-----Version: 1 ", "-----\nVersion: 1 "])
def test_a_key_is_found_after_the_beginning_of_another_one(between: str) -> None:
    lines = "QUJDREVGQUJDREVGQUJDREVG"
    assert lines not in redact(f"{KEY_BEGINS.removesuffix('-----')}{between}{KEY_BEGINS}\n{lines}\n")


def test_what_lies_within_a_credential_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    beside = named._find_connected

    def counted(name: TellingName, text: str) -> CredentialMatch | None:
        looked.append(name.start)
        return beside(name, text)

    monkeypatch.setattr(named, "_find_connected", counted)
    text = "password=" * 20_000
    assert find(text) == [("password", 9, len(text))]
    assert len(looked) < 10


@each(
    ("text", "found"),
    [
        ("password=" + "a1b2" * 120 + " x", ["a1b2" * 120]),  # longer than what is looked at
        ("password=" + "a1b2" * 60 + "password=" + "c3d4" * 60, ["a1b2" * 60 + "password=" + "c3d4" * 60]),
        ("password=" + "a1b2" * 60 + "password=your" + "c3d4" * 90, []),
        ("password=" + "a1b2" * 98 + "password=your" + "c3d4" * 90, ["a1b2" * 98 + "password=your" + "c3d4" * 90]),
        ("password=a1b2c3password is d4e5f6.", ["a1b2c3password", "d4e5f6"]),
        ("password for password:abc123 is hunter2", ["abc123", "hunter2"]),
        ("pwd='pwd=a1b2c3' pwd=a1b2c3pwd", ["pwd=a1b2c3", "a1b2c3pwd"]),
    ],
)
def test_credentials_within_credentials(text: str, found: list[str]) -> None:
    assert [text[one.start : one.end] for one in find(text)] == found


@each(
    ("text", "found"),
    [
        ("curl -s -u bob:a1b2c3 -u eve:d4e5f6", ["a1b2c3"]),
        ("curl -u bob:a1b2c3 x; curl --user=eve:d4e5f6 y", ["a1b2c3", "d4e5f6"]),
        ("curly -u bob:a1b2c3", []),
        ("curl x\n -u bob:a1b2c3", []),
        ("curl " + "x" * 200 + " -u bob:a1b2c3", []),
        ("curl " + "x" * 199 + " -u bob:a1b2c3", ["a1b2c3"]),
    ],
)
def test_passwords_that_are_given_to_curl(text: str, found: list[str]) -> None:
    assert [text[one.start : one.end] for one in find(text)] == found
