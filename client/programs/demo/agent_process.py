"""One agent of the demo: a separate process with a plain client.

Its arguments are SOCKET NAMESPACE. It reads orders from stdin, one JSON object per line:
`{"remember": TEXT, "namespace": NS}` or `{"ask": TEXT, "limit": N}`. Each is answered with one line on stdout. The
process ends when its input ends.
"""

import sys
import time
from typing import Any

import msgspec

from memoryd.client import Client, MemorydError
from memoryd.client.protocol import Add, NewMemory


def answer(client: Client, order: dict[str, Any]) -> dict[str, Any]:
    """Run one order and return its result, with the time that it took."""
    started = time.perf_counter()
    result: dict[str, Any]
    if "remember" in order:
        memory = NewMemory(content=order["remember"], type="decision", metadata={"agent": client.namespace})
        added = client.call(Add(memory=memory, namespace=order["namespace"]))
        result = {"id": added.id, "outcome": added.outcome, "contradicts": added.contradicts}
    else:
        hits = client.search(order["ask"], limit=order["limit"])
        result = {"hits": hits.hits, "degraded": hits.degraded}
    return {**result, "took_ms": (time.perf_counter() - started) * 1000}


def main() -> None:
    """Answer orders until the input ends."""
    with Client(sys.argv[2], socket=sys.argv[1], token="", autostart=False) as client:
        for line in sys.stdin.buffer:
            try:
                reply = answer(client, msgspec.json.decode(line))
            except MemorydError as error:
                reply = {"error": error.message}
            sys.stdout.buffer.write(msgspec.json.encode(reply) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
