"""Measure what agents are told of saved memories: what they need, what holds now, what hostile saves come to.

python tests/quality/saved.py [projects | changes | hostile ...] [--half HALF] [--model NAME | --config FILE] [--json]

The sets are those of `holds`; `saved_projects`, `saved_changes` and `saved_hostile` say what is counted. No text of the
data is printed, so that the unseen half can be measured and stay unseen.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import saved_changes
import saved_hostile
import saved_projects
from holds import HALVES
from printing import print_json
from temporary import DEFAULTS, declare_settings, read_settings

from memoryd.client.errors import MemorydError

MEASURES: Mapping[str, Callable[[str, str], dict[str, Any]]] = {
    "projects": saved_projects.measure_projects,
    "changes": saved_changes.measure_changes,
    "hostile": saved_hostile.measure_hostile,
}
TEXTS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "projects": saved_projects.report_text,
    "changes": saved_changes.report_text,
    "hostile": saved_hostile.report_text,
}


def main() -> None:
    """Measure the sets of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sets", nargs="*", choices=[[], *MEASURES], metavar="SET", help=f"{', '.join(MEASURES)} (all)")
    parser.add_argument("--half", choices=HALVES, default=HALVES[0], help="of the sets (seen)")
    parser.add_argument("--json", action="store_true", help="print all figures, and those of each case")
    declare_settings(parser)
    args = parser.parse_args()
    try:
        reports = {name: measure(name, args.half, read_settings(args)) for name in args.sets or MEASURES}
    except (MemorydError, OSError) as error:
        sys.exit(f"{Path(__file__).name}: {error}")
    print_json(reports) if args.json else print("\n\n".join(TEXTS[name](one) for name, one in reports.items()))


def measure(name: str, half: str, settings: str = DEFAULTS) -> dict[str, Any]:
    """Return the report on a half of a set, without any text of it."""
    return MEASURES[name](half, settings)


if __name__ == "__main__":
    main()
