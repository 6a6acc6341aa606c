"""A client written from PROTOCOL.md and protocol.json alone: the standard library and nothing of memoryd's code."""

import json
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

CONTRACT = json.loads((Path(__file__).parents[2] / "protocol.json").read_text())


class Refused(Exception):
    """An error of the daemon: its code, its sentence, its details."""


class PlainClient:
    """One connection. `send` begins a call and returns its number; `wait` returns its result, in whatever order."""

    def __init__(self, path: str) -> None:
        self.stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.stream.settimeout(30)
        self.stream.connect(path)
        self.last, self.done = 0, dict[int, Any]()

    def call(self, method: str, **parameters: Any) -> Any:
        return self.wait(self.send(method, **parameters))

    def send(self, method: str, **parameters: Any) -> int:
        assert parameters.keys() <= CONTRACT["methods"][method]["parameters"]["properties"].keys()
        self.last += 1
        payload = pack([CONTRACT["version"], self.last, {"method": method, **parameters}])
        self.stream.sendall(struct.pack(">I", len(payload)) + payload)
        return self.last

    def wait(self, number: int, progress: Callable[[Any], Any] = lambda event: None) -> Any:
        while number not in self.done:
            (size,) = struct.unpack(">I", self.read(4))
            (kind, of, *body), _ = unpack(self.read(size), 0)
            if kind in (0, 1):
                self.done[of] = body[0] if kind == 0 else Refused(*body)
            elif kind == 2 and of == number:
                progress(body[0])
        if isinstance(result := self.done.pop(number), Refused):
            raise result
        return result

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.stream.recv(size - len(data))
            assert part, "the daemon ended the connection"
            data += part
        return data


def pack(value: Any) -> bytes:
    """Return a value as MessagePack, each in the longest form of its kind."""
    match value:
        case None | bool():
            return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
        case int():
            return struct.pack(">Bq", 0xD3, value)
        case float():
            return struct.pack(">Bd", 0xCB, value)
        case str():
            return struct.pack(">BI", 0xDB, len(data := value.encode())) + data
        case list():
            return struct.pack(">BI", 0xDD, len(value)) + b"".join(map(pack, value))
    return struct.pack(">BI", 0xDF, len(value)) + b"".join(pack(one) for pair in value.items() for one in pair)


FIXED = dict(zip(range(0xCA, 0xD4), (">f", ">d", ">B", ">H", ">I", ">Q", ">b", ">h", ">i", ">q"), strict=True))
LENGTHS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}


def unpack(data: bytes, at: int) -> tuple[Any, int]:
    """Return the MessagePack value that begins at a place, and where it ends."""
    first, at = data[at], at + 1
    if first < 0x80 or first >= 0xE0:
        return first - 256 * (first >= 0xE0), at
    if first in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[first], at
    if form := FIXED.get(first):
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if form := LENGTHS.get(first):
        size, at = struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    else:
        size = first & (0x1F if first >= 0xA0 else 0x0F)
    if 0xA0 <= first < 0xC0 or 0xD9 <= first <= 0xDB:
        return data[at : at + size].decode(), at + size
    is_map = first < 0x90 or first >= 0xDE
    items = []
    for _ in range(size * (1 + is_map)):
        item, at = unpack(data, at)
        items.append(item)
    return (dict(zip(items[::2], items[1::2], strict=True)) if is_map else items), at
