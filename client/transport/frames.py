"""Frames on the socket: a 4-byte big-endian length, then that many bytes of msgpack. No I/O here."""

import struct
from collections.abc import Iterator

from memoryd.client.errors import BadFrame
from memoryd.client.protocol import MAX_FRAME_BYTES

_LENGTH = struct.Struct(">I")


def frame(payload: bytes | bytearray) -> bytes:
    """Return `payload` after its length; raise `BadFrame` if it is over the limit."""
    _check_size(len(payload))
    return _LENGTH.pack(len(payload)) + payload


class FrameReader:
    """Collects received bytes and yields complete frames; used by the daemon and the clients."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def size(self) -> int:
        """Number of bytes in the buffer: an incomplete frame, and frames that were not read yet."""
        return len(self._buffer)

    def feed(self, data: bytes = b"") -> Iterator[bytes]:
        """Add received bytes; yield each complete payload. Raise `BadFrame` for a length over the limit.

        A caller that stops early gets the remaining payloads from the next `feed`.
        """
        self._buffer += data
        return self._payloads()

    def _payloads(self) -> Iterator[bytes]:
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            _check_size(length)
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            with memoryview(self._buffer) as received:
                payload = bytes(received[_LENGTH.size : end])
            del self._buffer[:end]
            yield payload


def _check_size(length: int) -> None:
    if length > MAX_FRAME_BYTES:
        raise BadFrame(
            f"A frame of {length} bytes is over the limit of {MAX_FRAME_BYTES} bytes; split the call.",
            {"limit_bytes": MAX_FRAME_BYTES},
        )
