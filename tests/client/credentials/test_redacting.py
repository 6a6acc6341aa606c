import time
import tomllib
from collections import Counter
from importlib.resources import files

import pytest
from announced_examples import ANNOUNCED
from credential_examples import HARMLESS, HOLDING
from hypothesis import given
from hypothesis import strategies as st

from memoryd.client.credentials import allow_list, describe_kinds, find, named, redact, redact_tree
from memoryd.client.credentials.names import TellingName
from memoryd.client.credentials.rules import RULES, CredentialMatch

MARKED = [(kind, text) for kind, texts in HOLDING.items() for text in texts]
KEYS = [text.replace("«", "").replace("»", "") for _, text in MARKED]

TEXTS = [*KEYS, *(text for text, _ in ANNOUNCED)]
TOKEN = next(text for text in KEYS if text.startswith("github_"))


@pytest.mark.parametrize(("kind", "marked"), MARKED, ids=[f"{kind}-{n}" for n, (kind, _) in enumerate(MARKED)])
def test_the_credential_goes_and_the_rest_stays(kind: str, marked: str) -> None:
    before, _, rest = marked.partition("«")
    _, _, after = rest.partition("»")
    assert redact(marked.replace("«", "").replace("»", "")) == f"{before}[secret: {kind}]{after}"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_a_credential_stays(text: str) -> None:
    assert redact(text) == text


def test_every_rule_has_an_example_and_says_where_it_is_documented() -> None:
    assert [rule.id for rule in RULES if not any(map(rule.pattern.search, TEXTS)) or len(rule.description) < 6] == []


def test_every_rule_has_keywords_of_which_each_example_has_one() -> None:
    """A rule that is tried in the text begins with a keyword; a keyword that is not in the pattern finds nothing."""
    for rule in RULES:
        matches = [match for text in TEXTS for match in rule.pattern.finditer(text) if rule.judge(match)]
        for match in matches:
            has = match.group().lower() if rule.folded else match.group()
            if "text" in rule.tags:
                assert has.startswith(rule.keywords), rule.id
            else:
                assert any(keyword in has for keyword in rule.keywords), rule.id


def test_a_rule_has_the_fields_of_gitleaks_alone() -> None:
    rows = tomllib.loads(files("memoryd.client.credentials").joinpath("rules.toml").read_text("utf-8"))["rules"]
    assert set().union(*rows) <= {"id", "description", "regex", "keywords", "entropy", "tags"}
    assert len(rows) == len(RULES) > 100


@pytest.mark.parametrize("text", KEYS)
def test_what_was_redacted_is_not_redacted_again(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@pytest.mark.parametrize("text", KEYS)
def test_a_credential_is_found_within_other_text(text: str) -> None:
    kinds: Counter[str] = Counter()
    around = f"Before the release we talked.\n{text}\nThat was all of it."
    redact(around, kinds)
    assert kinds.total() == 1


def test_several_credentials_of_a_text_are_all_taken_out_and_counted() -> None:
    kinds: Counter[str] = Counter()
    text = "\n".join(KEYS[10:20])
    redacted = redact(text, kinds)
    assert kinds.total() == redacted.count("[secret: ") == 10


def test_a_text_keeps_its_lines_where_that_is_asked_for() -> None:
    key = next(text for text in KEYS if text.startswith("-----BEGIN RSA"))
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


def test_kinds_are_told_in_a_few_words() -> None:
    assert describe_kinds({"password": 1, "GitHub token": 2}) == "2 GitHub tokens, 1 password"


@given(st.text(max_size=400))
def test_any_text_is_redacted_without_an_error_and_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.text(max_size=80), st.sampled_from(KEYS), st.text(max_size=80))
def test_a_credential_is_found_whatever_stands_around_it(before: str, key: str, after: str) -> None:
    assert find(f"{before}\n\n {key} \n\n{after}")


KEY_BEGINS = "-----BEGIN PRIVATE KEY-----"


@pytest.mark.slow
@pytest.mark.parametrize(
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


@pytest.mark.parametrize("part", ["Version: ", "\nVersion: x", "Version: 12345 ", ", " * 8 + "a" * 15 + " Comment: "])
def test_the_headers_of_a_key_without_lines_take_no_time(part: str) -> None:
    assert find(KEY_BEGINS + part * 2_000) == []


@pytest.mark.parametrize("between", ["-----", "", "\n", "-----Version: 1 ", "-----\nVersion: 1 "])
def test_a_key_is_found_after_the_beginning_of_another_one(between: str) -> None:
    lines = "QUJDREVGQUJDREVGQUJDREVG"
    assert lines not in redact(f"{KEY_BEGINS.removesuffix('-----')}{between}{KEY_BEGINS}\n{lines}\n")


def test_what_lies_within_a_credential_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    beside = named._find_beside

    def counted(name: TellingName, text: str) -> CredentialMatch | None:
        looked.append(name.start)
        return beside(name, text)

    monkeypatch.setattr(named, "_find_beside", counted)
    text = "password=" * 20_000
    assert find(text) == [("password", 9, len(text))]
    assert len(looked) < 10


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
