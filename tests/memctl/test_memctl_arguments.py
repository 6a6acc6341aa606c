import argparse
import shlex

import pytest
from examples import invocations

from each import each
from memoryd.client.programs.memctl.arguments import (
    Usage,
    command_of,
    find_command,
    parse,
    parse_scalar,
    parse_timeout,
    parse_where,
)
from memoryd.client.programs.memctl.commands import EXAMPLES, list_commands


@each(
    ("argv", "name", "rest"),
    [
        ([], None, []),
        (["--json"], None, ["--json"]),
        (["search", "x"], "search", ["x"]),
        (["--json", "search", "x"], "search", ["--json", "x"]),
        (["--socket", "search", "list"], "list", ["--socket", "search"]),
        (["--socket=/x", "list"], "list", ["--socket=/x"]),
        (["model"], "model list", []),
        (["model", "--json"], "model list", ["--json"]),
        (["model", "--json", "pull", "x"], "model pull", ["--json", "x"]),
        (
            ["--namespace", "a", "model", "--timeout", "3", "use", "x"],
            "model use",
            ["--namespace", "a", "--timeout", "3", "x"],
        ),
        (["config"], "config show", []),
    ],
)
def test_the_command_is_found_among_the_options(argv: list[str], name: str | None, rest: list[str]) -> None:
    assert find_command(argv) == (name, rest)


@each(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("6379", 6379),
        ("-1", -1),
        ("0.5", 0.5),
        ("1.5e3", 1500.0),
        ("007", "007"),
        ("1_000", "1_000"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("null", "null"),
        ("9" * 30, "9" * 30),
        ("", ""),
        ("True", "True"),
    ],
)
def test_a_value_is_what_it_looks_like(text: str, value: object) -> None:
    assert parse_scalar(text) == value
    assert type(parse_scalar(text)) is type(value)


def test_a_timeout_is_a_positive_number_of_seconds() -> None:
    assert parse_timeout("2.5") == 2.5
    for wrong in ("0", "-1", "nan", "inf", "x", "", "1e9"):
        with pytest.raises(argparse.ArgumentTypeError):
            parse_timeout(wrong)


@each(
    ("line", "sentence"),
    [
        ("project rename", "PROJECT and NEW are missing; for example: memctl project rename api-2 payments"),
        ("search x --limit 0", "--limit must be 1 or more, not 0"),
        ("search x --limit 1001", "--limit must be 1000 or less, not 1001"),
        ("search x --limit ten", "--limit must be a whole number, not 'ten'"),
        ("list --offset -1", "--offset must be 0 or more, not -1"),
        ("search x --floor low", "--floor must be a number, not 'low'"),
        ("search x --floor nan", "--floor must be a number, not 'nan'"),
        ("search x --mode any", "--mode must be one of hybrid, lexical, dense, not 'any'"),
        ("search x --limit", "--limit needs a value"),
        ("search x --json=3", "--json takes no value like '3'"),
        ("search x --limt 3", "there is no option --limt; did you mean `--limit`?"),
        ("search x --zebra", "there is no option --zebra"),
        ("serach x", "'serach' is not a command; did you mean `memctl search`?"),
        ("xyzzy", "'xyzzy' is not a command; `memctl help --all` lists them."),
        ("list --tag x", "there is no option --tag; write `--where tags=…`"),
        ("search x --tags=y", "there is no option --tags; write `--where tags=…`"),
        ("list --session x", "there is no option --session; write `--where session=…`"),
        ("list --key x", "there is no option --key; write `--where memory.key=…`"),
        ("context x --source mail", "there is no option --source; write `--where memory.source=…`"),
        ("explain x --after yesterday", "there is no option --after; write `--where 'memory.created_at>…'`"),
        ("why-not 3f9a x --before May", "there is no option --before; write `--where 'memory.created_at<…'`"),
        ("list x", "'x' is one word too many"),
        ("top --interval 0", "--interval must be 0.1 or more, not 0"),
        ("export a.jsonl", "'a.jsonl' is one word too many; it writes to standard output: `memctl export > FILE`"),
        ("add x y", "'y' is one word too many; quote a text of several words"),
        ('update 3f9a "We use Valkey"', "'We use Valkey' is one word too many; a new text is given with --content"),
        ('get 3f9a "We use Valkey"', "'We use Valkey' is one word too many"),
        ("hooks install claude", "not 'claude'; did you mean `claude-code`?"),
        ("links --dismiss 3f9a", "--dismiss needs 2 values"),
        ("feedback 3f9a", "give --useful or --useless"),
        ("feedback 3f9a --useful --useless", "give --useless or --useful, not both"),
    ],
)
def test_a_wrong_command_line_is_explained_in_a_persons_words(line: str, sentence: str) -> None:
    with pytest.raises(Usage) as refused:
        parse(shlex.split(line))
    assert sentence in str(refused.value)
    assert "argument" not in str(refused.value)


@each("name", sorted(list_commands()))
def test_every_command_has_help_with_examples_that_fits_a_narrow_terminal(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.client.programs.memctl.arguments.columns", lambda: 80)
    with pytest.raises(SystemExit) as leaving:
        parse([*name.split(), "--help"])
    text = capsys.readouterr().out
    assert leaving.value.code == 0
    assert text.startswith(f"usage: memctl {name} ")
    assert "\nexamples:\n" in text
    assert [line for line in text.splitlines() if len(line) > 80] == []


@each("name", sorted(list_commands()))
def test_the_examples_of_a_command_are_calls_of_it_that_its_parser_takes(name: str) -> None:
    examples = list(invocations(command_of(name)[0].examples))
    assert examples, "a command without an example"
    assert name in {find_command(words)[0] for words in examples}
    for words in (*examples, *invocations(EXAMPLES)):
        parse(words)


@each(
    ("text", "where"),
    [
        ("status=done", {"status": {"$eq": "done"}}),
        ("score>=4", {"score": {"$gte": 4}}),
        ("score < 4.5", {"score": {"$lt": 4.5}}),
        ("open!=true", {"open": {"$ne": True}}),
        ("note=a=b", {"note": {"$eq": "a=b"}}),
        ("from= <ada@example.org>", {"from": {"$eq": "<ada@example.org>"}}),
        ("memory.expires_at < 2026-12-01T00:00:00Z", {"memory.expires_at": {"$lt": 1796083200.0}}),
        ("memory.created_at>=1796083200", {"memory.created_at": {"$gte": 1796083200}}),
        ('{"a": {"$in": [1, 2]}}', {"a": {"$in": [1, 2]}}),
    ],
)
def test_conditions_are_comparisons_or_json(text: str, where: object) -> None:
    assert parse_where(text) == where


@each("text", ["", "score", "=4", "{", '["a"]', "memory.created_at>soon"])
def test_what_is_no_condition_is_wrong_usage(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        parse_where(text)


@each("sign", ["==", "=>", "=<", "<>", ">>", "<<", "!==", ">=="])
def test_a_comparison_that_does_not_exist_is_refused(sign: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"{sign} is no comparison; there are =, !=, >, >=, <, <="):
        parse_where(f"score{sign}2")
