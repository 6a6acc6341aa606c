"""The findings of `memctl doctor` for the page. It runs as a separate process, like any client of the daemon."""

import asyncio
import sys
from argparse import Namespace

from memoryd.client.errors import MemorydError, TimedOut

_MOST_S = 60.0


async def read_findings(args: Namespace) -> bytes:
    """Return the output of `memctl doctor --json`; raise `MemorydError` if it takes too long or prints nothing."""
    words = [*(["--socket", args.socket] if args.socket else []), "--json", "--no-autostart"]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "memoryd.client.programs.memctl", "doctor", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        found, _ = await asyncio.wait_for(child.communicate(), _MOST_S)
    except TimeoutError:
        raise TimedOut(f"memctl doctor took more than {_MOST_S:.0f} s.") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if not found:
        raise MemorydError("memctl doctor printed nothing.")
    return found
