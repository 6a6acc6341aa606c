"""memctl: the admin command of memoryd.

Each group of commands has a module, which is imported when one of its commands is used. A search must start quickly,
so no module that it loads imports asyncio, subprocess, json or uuid. A hook of an agent runs at every prompt; it is
handled apart from here on, without the parser and the protocol's classes. memctl imports only the standard library,
msgspec and the client.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 no daemon answers, 130 interrupted, 141 the output was closed.
"""

import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run memctl with the process's arguments and end the process."""
    gc.disable()  # imports create no garbage; `running` enables it for the command itself
    _import_msgspec()
    if sys.platform == "linux" and sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv):
        from memoryd.client.programs.hooks import hook

        hook.main(sys.argv[2:])
    from memoryd.client.programs.memctl.running import run

    code = run(sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # skips the interpreter's shutdown, which takes 10 ms and frees only memory


def _import_msgspec() -> None:
    """Import msgspec without typing_extensions, which it uses if that is installed.

    Everything that msgspec uses of it is in `typing` since Python 3.11, and its import takes more than half the time.
    """
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules["typing_extensions"]
