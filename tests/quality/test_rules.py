"""The table of rules about language, and what decides whether one stays."""

import subprocess
import sys

from rules import NONE, RULES, judge

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
