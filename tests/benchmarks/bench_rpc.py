"""The socket: round trips of one client and throughput of sixteen, beside a bare echo of the same sizes.

The echo is the least that any Python server on a Unix socket costs here: an asyncio protocol that answers each frame
with a fixed reply of the same size, in a process of its own, to a client that decodes nothing. `get` runs on the
daemon's event loop, `status` runs on a worker thread.
"""

import asyncio
import multiprocessing
import os
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import CLIENTS, Report, encoded_size, in_processes, percentile, repeated, running

from memoryd.client import Client
from memoryd.client.protocol import Get, GetStatus
from memoryd.client.transport.exchange import encode_call
from memoryd.client.transport.frames import FrameReader

_LENGTH = struct.Struct(">I")


def main() -> None:
    """Measure each call and its echo."""
    report = Report(__doc__)
    rounds, seconds = (1000, 1.5) if report.quick else (5000, 4.0)
    with running(1_000) as daemon:
        with daemon.client() as client:
            memory = client.list(limit=1)[0]
            sizes = {
                "get": (len(encode_call(Get(id=memory.id), 1)), encoded_size(memory) + 7),
                "status": (len(encode_call(GetStatus(), 1)), encoded_size(client.status()) + 7),
            }
        rows = []
        for name, (asked, answered) in sizes.items():
            call: Callable[[Client], Any] = _get(memory.id) if name == "get" else _status
            rows.append(_row(f"{name}", asked, answered, daemon.socket, call, rounds, seconds, daemon.pid))
            with echo(answered) as (path, pid):
                rows.append(_row(f"echo of {name}'s sizes", asked, answered, path, _echo(asked), rounds, seconds, pid))
    report.table("Round trips", rows)
    for daemon_row, echo_row in zip(rows[::2], rows[1::2], strict=True):
        ratio = daemon_row["1 client p50 µs"] / echo_row["1 client p50 µs"]
        share = daemon_row[f"{CLIENTS} clients req/s"] / echo_row[f"{CLIENTS} clients req/s"]
        report.note(f"{daemon_row['call']}: {ratio:.2f} × the echo's round trip, {share:.0%} of its throughput.")
    report.close()


def _row(
    name: str,
    asked: int,
    answered: int,
    path: Path,
    call: Callable[[Client], Any],
    rounds: int,
    seconds: float,
    pid: int,
) -> dict[str, Any]:
    with Client("", socket=path, autostart=False) as client:
        times = repeated(lambda _: call(client), range(rounds), warm_up=100)
    began_cpu = _cpu_s(pid)
    done = in_processes(_many, [(path, call)] * CLIENTS, seconds)
    return {
        "call": name,
        "request B": asked,
        "reply B": answered,
        "1 client p50 µs": percentile(times, 50) * 1000,
        "p99 µs": percentile(times, 99) * 1000,
        f"{CLIENTS} clients req/s": sum(done) / seconds,
        "server CPU µs/req": (_cpu_s(pid) - began_cpu) / max(1, sum(done)) * 1e6,
    }


def _many(deadline: float, path: Path, call: Callable[[Client], Any]) -> int:
    done = 0
    with Client("", socket=path, autostart=False) as client:
        while time.monotonic() < deadline:
            call(client)
            done += 1
    return done


def _get(memory: str) -> Callable[[Client], Any]:
    return lambda client: client.get(memory)


def _status(client: Client) -> Any:
    return client.status()


def _echo(asked: int) -> Callable[[Client], Any]:
    """Return a call that sends a frame of `asked` bytes over the client's stream and reads one frame back."""
    request = _LENGTH.pack(asked - _LENGTH.size) + bytes(asked - _LENGTH.size)

    def call(client: Client) -> None:
        connection = client._take()
        stream = connection._socket
        stream.settimeout(30)
        stream.sendall(request)
        while not list(connection._reader.feed(stream.recv(262144))):
            pass
        client._idle.append(connection)

    return call


@contextmanager
def echo(answered: int) -> Iterator[tuple[Path, int]]:
    """Run an echo server in a process of its own; give its socket and process id."""
    with tempfile.TemporaryDirectory(prefix="mb-") as folder:
        path = Path(folder, "s")
        context = multiprocessing.get_context("spawn")
        server = context.Process(target=_serve_echo, args=(path, answered), daemon=True)
        server.start()
        while not path.exists():
            time.sleep(0.01)
        assert server.pid is not None
        yield path, server.pid
        server.terminate()
        server.join()


def _serve_echo(path: Path, answered: int) -> None:
    reply = _LENGTH.pack(answered) + bytes(answered)

    class Echo(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport, self.frames = transport, FrameReader()

        def data_received(self, data: bytes) -> None:
            for _ in self.frames.feed(data):
                self.transport.write(reply)

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_unix_server(Echo, path)
        await server.serve_forever()

    asyncio.run(serve())


def _cpu_s(pid: int) -> float:
    """Return the processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
