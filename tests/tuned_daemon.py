"""The daemon with other constants: python tuned_daemon.py '{"daemon.jobs.states.FAILURES": 1000}' [OPTION…]."""

import importlib
import json
import sys


def tune(constants: dict[str, object]) -> None:
    """Give constants other values, by their names within memoryd."""
    for path, value in constants.items():
        module, _, name = path.rpartition(".")
        owner = importlib.import_module(f"memoryd.{module}")
        getattr(owner, name)  # it must be there
        setattr(owner, name, value)


if __name__ == "__main__":
    from memoryd.daemon.__main__ import main

    tune(json.loads(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
