"""Measure what hooks give an agent unasked, at a session's start and beside a prompt: does it help, or harm?

python tests/quality/unasked.py [PATH] [--lines] [--model NAME | --config FILE] [--json]

PATH is a file as `timeline` describes it, by default the seen half of this checkout's. `replaying` has it happen on a
temporary daemon, `judging` says what each line is worth that came up.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from judging import judge_all, make_report, report_text
from printing import print_json
from replaying import replay
from temporary import DEFAULTS, declare_settings, read_settings
from timeline import read_rows

from memoryd.client.errors import Invalid, MemorydError

SEEN = Path(__file__).resolve().parents[1] / "data" / "unasked" / "seen.jsonl"


def main() -> None:
    """Judge the file of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("path", type=Path, nargs="?", default=SEEN, metavar="PATH", help="the data (the seen half)")
    parser.add_argument("--lines", action="store_true", help="print the lines of every test point")
    parser.add_argument("--json", action="store_true", help="print all figures, and those of each test point")
    declare_settings(parser)
    args = parser.parse_args()
    try:
        report = judge_file(args.path, args.lines, read_settings(args))
    except (MemorydError, OSError) as error:
        sys.exit(f"{Path(__file__).name}: {error}")
    print_json(report) if args.json else print(report_text(report))


def judge_file(path: Path, show_lines: bool = False, settings: str = DEFAULTS) -> dict[str, Any]:
    """Return the report on a file."""
    if show_lines and any("unseen" in one.name.casefold() for one in (path, path.resolve())):
        raise Invalid(f"{path} is not to be read by anyone who works on what it measures.")
    rows = read_rows(path)
    with replay(rows, settings) as (place, injections):
        return make_report(path, place.wait_until_ready(), judge_all(rows, injections), show_lines)


if __name__ == "__main__":
    main()
