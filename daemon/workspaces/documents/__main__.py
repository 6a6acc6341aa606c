"""The child that reads and parses: `python -m memoryd.daemon.workspaces.documents`, calls on stdin, replies on stdout.

It ends when its stdin does, so it cannot outlive the daemon; it is slow on purpose where others want the processor, and
bounded in memory and in the time that it gives to a file.
"""

import gc
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from memoryd.client.errors import MemorydError
from memoryd.daemon.workspaces.documents.document import Document, refusal
from memoryd.daemon.workspaces.documents.files import read
from memoryd.daemon.workspaces.documents.scan import scan
from memoryd.daemon.workspaces.documents.wire import LENGTH, Read, ReaderReply, Walk, frame, requests

NICE = 5
MEMORY_BYTES = 2 * 1024**3  # of address space
FILE_LIMIT_S = 60.0


def main() -> None:
    """Answer requests until there are no more."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    _settle()
    while (request := _decode_request(source)) is not None:
        for reply in _answer(request):
            sink.write(frame(reply))
            sink.flush()


def _settle() -> None:
    os.nice(NICE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the daemon, which ends its child
    signal.signal(signal.SIGALRM, _refuse_number)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


def _refuse_number(number: int, where: FrameType | None) -> None:
    raise TimeoutError


def _decode_request(source: BinaryIO) -> Read | Walk | None:
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    return requests.decode(source.read(LENGTH.unpack(head)[0]))


def _answer(request: Read | Walk) -> Iterator[ReaderReply]:
    root = Path(request.root)
    if isinstance(request, Walk):
        globs = request.globs
        yield _perform(lambda: ReaderReply(scan=scan(root, globs)))
        return
    for relative in request.relatives:
        yield _perform(lambda relative=relative: ReaderReply(document=_read_document(root, relative, request)))  # type: ignore[misc]


def _perform(work: Callable[[], ReaderReply]) -> ReaderReply:
    try:
        return work()
    except MemorydError as error:
        return ReaderReply(error=(error.code, error.message))


def _read_document(root: Path, relative: str, request: Read) -> Document | None:
    signal.setitimer(signal.ITIMER_REAL, FILE_LIMIT_S)
    try:
        return read(root, relative, request.limits)
    except TimeoutError:
        return refusal(root, relative, f"It took more than {FILE_LIMIT_S:g} s to read.")
    except MemoryError:
        return refusal(root, relative, "There is not enough memory to read it.")
    except (ValueError, IndexError, KeyError, TypeError, AssertionError, RecursionError) as error:
        return refusal(root, relative, f"It cannot be parsed: {type(error).__name__}.")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main()
