"""Make the database of N memories that the benchmarks use, and print where it is: a million take minutes.

python tests/benchmarks/make_database.py N [--kind drawn|plain|real] [--to FOLDER]

`drawn`: vectors drawn from 10,000 real ones of the default model (each the mean of two of them with some noise), texts
and namespaces of the benchmarks. `plain`: random vectors, all at the root. `real`: every text embedded by the model.
"""

import argparse
import shutil
from pathlib import Path

from harness import database


def main() -> None:
    """Make it, unless it is there, and copy it where it is wanted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("memories", type=int)
    parser.add_argument("--kind", choices=("drawn", "plain", "real"), default="drawn")
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="copy it there, as a data directory of a daemon")
    given = parser.parse_args()
    place = database(given.memories, "" if given.kind == "real" else given.kind)
    if given.to:
        shutil.copytree(place, given.to)
    print(given.to or place)


if __name__ == "__main__":
    main()
