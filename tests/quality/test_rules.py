"""The table of rules about language, and what decides whether one stays."""

import subprocess
import sys

import pytest
from rules import NONE, RULES, acts_on, find_rule, judge, write_table

BASE = {
    "team": {"first": 200, "in five": 230},
    "projects": {"harm": 4, "help": 9},
    "unasked": {"harm": 0, "help": 5},
    **{name: {"nDCG": 66.0} for name in ("locomo", "realtalk", "beam")},
}
DATES = RULES[3]


def test_each_rule_can_be_taken_out() -> None:
    program = "\n".join(f"exec({rule.without!r})" for rule in RULES)
    subprocess.run([sys.executable, "-P", "-c", program], check=True)


def test_a_rule_stays_by_three_questions_a_point_or_a_line_that_harms() -> None:
    def judged(**changed: dict[str, float]) -> str:
        return judge({NONE: BASE, DATES.name: {**BASE, **changed}}, DATES)

    assert judged() == "goes"
    assert judged(team={"first": 198, "in five": 228}, locomo={"nDCG": 65.1}) == "goes"
    assert judged(projects={"harm": 3, "help": 0}, locomo={"nDCG": 67.5}) == "goes"
    assert judged(team={"first": 197, "in five": 230}) == "stays: first"
    assert judged(locomo={"nDCG": 65.0}, projects={"harm": 5, "help": 9}) == "stays: harm, nDCG"


def test_what_shows_no_loss_goes_once_all_sets_are_measured() -> None:
    measured = {name: BASE[name] for name in BASE if name not in ("beam", "unasked")}
    assert judge({NONE: BASE, DATES.name: measured}, DATES) == "no loss, not measured: beam, unasked"


def test_the_table_shows_what_changes_without_a_rule() -> None:
    base = {name: BASE[name] for name in ("team", "locomo", "projects")}
    header, _, all_, row = write_table({NONE: base, DATES.name: {**base, "locomo": {"nDCG": 64.86}, "projects": {}}})
    assert header.count("|") == all_.count("|") == row.count("|")
    assert all_ == f"| {NONE} | 200 · 230 | 66 | 4 · 9 |  |"
    assert row == f"| {DATES.name}: {DATES.purpose} | 0 · 0 | -1.1 | – · – | stays: nDCG |"


def test_what_is_saved_on_purpose_is_not_measured_where_nothing_is() -> None:
    [rule] = [one for one in RULES if one.name == "contradictions"]
    assert [acts_on(rule, name) for name in ("team", "locomo", "projects")] == [True, False, True]


def test_several_rules_are_taken_out_together() -> None:
    one, other = (next(rule for rule in RULES if rule.name == name) for name in ("logs", "importance"))
    both = find_rule("logs + importance")
    assert (both.acts, both.without) == ("turns", f"{one.without}\n{other.without}")
    with pytest.raises(SystemExit, match="'log' is no rule; there are none taken out, "):
        find_rule("log + importance")
