"""Send the calls that hooks spooled while the daemon did not run, before the database is copied or moved."""

import os
import time
from argparse import Namespace
from contextlib import suppress

from memoryd.client.errors import MemorydError
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.programs.memctl.output import print_note
from memoryd.client.programs.memctl.text_table import count_text
from memoryd.client.transport import paths


def send_spooled(args: Namespace, *, autostart: bool = False) -> None:
    """Send the spooled calls; report how many were sent, and how many still wait."""
    from memoryd.client.programs.hooks import spool  # imported here, because usually no call waits
    from memoryd.client.programs.hooks.wire import DaemonLink, Silent

    if not spool.count_waiting() or paths.socket_address(args.socket) != paths.socket_address():
        return  # the calls are for the socket of the environment, which is the only one that hooks use
    sent = 0
    with suppress(MemorydError, OSError, Silent):
        with client_for(args, autostart=autostart) as client:
            folder = client.status().data_dir
        if os.path.realpath(folder) != os.path.realpath(paths.data_folder()):
            return  # the daemon has another data directory
        give_up_at = time.monotonic() + args.timeout
        link = DaemonLink(give_up_at)
        try:
            sent = spool.replay(link, give_up_at)
        finally:
            link.close()
    if sent:
        print_note(f"memctl: sent {count_text(sent, 'call')} of hooks that waited for the daemon.")
    if left := spool.count_waiting():
        them = "them" if left > 1 else "it"
        print_note(f"memctl: {describe_waiting(left)} for the daemon; `memctl up` sends {them}.")


def describe_waiting(number: int) -> str:
    """Return `1 call of a hook waits`, `2 calls of hooks wait`."""
    return f"{count_text(number, 'call')} of hooks wait" if number != 1 else "1 call of a hook waits"
