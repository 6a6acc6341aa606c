"""Run one command and return its exit code; every failure becomes one sentence on stderr."""

import gc
import os
import sys
from collections.abc import Sequence

from memoryd.client.errors import MemorydError, Unavailable
from memoryd.client.programs.memctl.arguments import Usage, parse
from memoryd.client.programs.memctl.output import complain

DONE, ERROR, USAGE, NO_DAEMON, INTERRUPTED, NO_READER = 0, 1, 2, 3, 130, 141


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit code; every failure is one sentence on stderr."""
    try:
        code = _run(list(argv))
        if sys.stdout:
            sys.stdout.flush()
        return code
    except Usage as error:
        return complain(str(error), USAGE)
    except Unavailable as error:
        return complain(error.message, NO_DAEMON)
    except MemorydError as error:
        return complain(error.message, ERROR)
    except KeyboardInterrupt:
        return complain("Interrupted.", INTERRUPTED)
    except BrokenPipeError:
        _forget_output()
        return NO_READER
    except OSError as error:
        reason = f"{error.strerror or error}."
        return complain(f"{os.fsdecode(error.filename)}: {reason}" if error.filename else reason, ERROR)
    except RecursionError:
        if sys.flags.dev_mode:
            raise
        from memoryd.client.protocol import MAX_METADATA_DEPTH

        return complain(f"The input is nested too deeply; metadata may be nested {MAX_METADATA_DEPTH} deep.", ERROR)
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        name = type(error).__name__
        return complain(
            f"Unexpected {name}: {error} (`python -X dev -m memoryd.client.programs.memctl …` shows where).", ERROR
        )


def _run(argv: list[str]) -> int:
    try:
        command, args = parse(argv)
        gc.enable()
        return command.run(args) or DONE
    except SystemExit as exiting:  # of argparse, after --help and --version
        return int(exiting.code or 0)


def _forget_output() -> None:
    """Redirect stdout to /dev/null, so that the flush at exit does not fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
