"""What stands at the place in a test of answers that nobody believes: it speaks frames, and says what a file says."""

import sys
from pathlib import Path
from typing import Any

import msgspec

from memoryd.client.transport.frames import FrameReader, frame


def main(path: str) -> None:
    """Greet, then answer each list and question for candidates with the memories of the file, as they are."""
    write = sys.stdout.buffer
    write.write(frame(msgspec.msgpack.encode((0, 0, {"name": "acme", "namespace": "acme", "role": "agent"}))))
    write.flush()
    rows = msgspec.Raw(Path(path).read_bytes())  # as they are: decoded here, they would be refused here
    counts = Path(path).with_name("counts")
    counted = msgspec.msgpack.decode(counts.read_bytes()) if counts.exists() else {}
    frames = FrameReader()
    while data := sys.stdin.buffer.read1():
        for payload in frames.feed(data):
            _, number, call = msgspec.msgpack.decode(payload)
            answer: Any = {"memories": rows, "total": 100}
            if call["method"] == "find_candidates":
                answer = {"found": rows, "model": "none", "documents": 2, "average": 3.0, "holding": {"releas": 1}}
                answer |= counted
            if call["method"] == "get":
                answer = msgspec.Raw(bytes(rows)[1:])  # of a list of one
            write.write(frame(msgspec.msgpack.encode((0, number, answer))))
            write.flush()


if __name__ == "__main__":
    main(sys.argv[1])
