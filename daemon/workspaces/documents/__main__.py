"""The child process that reads and parses files; its standard input is a socket to the daemon.

It is run as `python -m memoryd.daemon.workspaces.documents`. It ends when the daemon ends or sends no request for a
while; it has low priority and a limit of memory. The daemon kills it when a file takes too long.
"""

import gc
import os
import resource
from multiprocessing.connection import Connection
from pathlib import Path

from memoryd.client.errors import MemorydError
from memoryd.daemon.workspaces.documents.document import Document, refusal
from memoryd.daemon.workspaces.documents.files import read
from memoryd.daemon.workspaces.documents.messages import Read, ReaderReply, Walk, encoder, requests
from memoryd.daemon.workspaces.documents.walking import scan

IDLE_S = 10.0
NICE = 5
MEMORY_BYTES = 2 * 1024**3  # of address space


def main() -> None:
    """Answer requests until there is none for a while."""
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.freeze()
    gc.set_threshold(20_000)
    daemon = Connection(0)
    while daemon.poll(IDLE_S):
        try:
            request = requests.decode(daemon.recv_bytes())
        except EOFError:
            return
        daemon.send_bytes(encoder.encode(_answer(request)))


def _answer(request: Read | Walk) -> ReaderReply:
    root = Path(request.root)
    try:
        if isinstance(request, Walk):
            return ReaderReply(scan=scan(root, request.globs))
        return ReaderReply(document=_read_document(root, request))
    except MemorydError as error:
        return ReaderReply(error=(error.code, error.message))


def _read_document(root: Path, request: Read) -> Document | None:
    try:
        return read(root, request.relative, request.limits)
    except MemoryError:
        return refusal(root, request.relative, "There is not enough memory to read it.")
    except (ValueError, IndexError, KeyError, TypeError, AssertionError, RecursionError) as error:
        return refusal(root, request.relative, f"It cannot be parsed: {type(error).__name__}.")


if __name__ == "__main__":
    main()
