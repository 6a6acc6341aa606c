"""What takes longer than a call: doctor's findings, and the map of topics with its layout."""

import asyncio
import sys
from argparse import Namespace

import msgspec

from memoryd.client.errors import MemorydError, TimedOut
from memoryd.client.memctl.graph_data import fetch
from memoryd.client.memctl.graph_layout import lay_out
from memoryd.client.memctl.web.reports.health import show_findings

MAX_NODES = 10_000  # above that a map says nothing: topics are listed
_DOCTOR_S = 60.0


async def read_findings(args: Namespace) -> bytes:
    """Return what `memctl doctor --json` prints, as a panel."""
    words = [*(["--socket", args.socket] if args.socket else []), "--json", "--no-autostart"]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "memoryd.client.memctl", "doctor", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        found, _ = await asyncio.wait_for(child.communicate(), _DOCTOR_S)
    except TimeoutError:
        raise TimedOut(f"memctl doctor took more than {_DOCTOR_S:.0f} s.") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if not found:
        raise MemorydError("memctl doctor printed nothing.")
    return msgspec.json.encode(show_findings(found))


async def read_map(args: Namespace) -> bytes:
    """Return the largest nodes of the graph with their places, for the map."""
    wanted = Namespace(**{**vars(args), "preview": 80, "reach": None, "no_autostart": True})
    return await asyncio.to_thread(lambda: msgspec.json.encode(lay_out(fetch(wanted, MAX_NODES))))
