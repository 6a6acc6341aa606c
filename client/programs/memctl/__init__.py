"""memctl: the admin command of memoryd.

One module per group of commands, imported when one of its commands is used: a search from a shell hook must cost no
more than it needs, so nothing here imports asyncio, subprocess, json or uuid on that way. A hook of an agent runs at
every prompt: it takes a way of its own from here on, without the parser and the protocol's classes. Standard library,
msgspec and the client only.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 no daemon answers, 130 interrupted, 141 nobody reads the output.
"""

import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn


def main() -> NoReturn:
    """Run memctl with the process's arguments and end the process."""
    gc.disable()  # of what is imported nothing is garbage; `running` turns it on for the command itself
    _import_msgspec()
    if sys.platform == "linux" and sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv):
        from memoryd.client.programs.hooks import hook

        hook.main(sys.argv[2:])
    code = run(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # taking the interpreter down module by module costs 10 ms and frees nothing that matters


def _import_msgspec() -> None:
    """Import msgspec without typing_extensions, which it takes where that is installed.

    All that it takes from there is in `typing` since Python 3.11, and that import is more than half of msgspec's own.
    """
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit code; every failure is one sentence on stderr."""
    from memoryd.client.programs.memctl.running import run

    return run(argv)
