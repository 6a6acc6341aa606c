"""What the daemon and its reading child say to each other: frames of msgpack over two pipes, replies in order."""

import struct

import msgspec
from msgspec import Struct

from memoryd.daemon.workspaces.documents.document import Document, Limits, Scan

LENGTH = struct.Struct(">I")


class Read(Struct, tag="read"):
    """Read files: one reply for each."""

    root: str
    relatives: list[str]
    limits: Limits


class Walk(Struct, tag="walk"):
    """Scan a folder: one reply."""

    root: str
    globs: list[str]


class ReaderReply(Struct, omit_defaults=True):
    """A document, none (the file no longer exists), what a scan found, or the code of an error and its sentence."""

    document: Document | None = None
    scan: Scan | None = None
    error: tuple[str, str] | None = None


_ENCODER = msgspec.msgpack.Encoder()
requests: msgspec.msgpack.Decoder[Read | Walk] = msgspec.msgpack.Decoder(Read | Walk)
replies = msgspec.msgpack.Decoder(ReaderReply)


def frame(value: Read | Walk | ReaderReply) -> bytes:
    """Return a message as a frame."""
    payload = _ENCODER.encode(value)
    return LENGTH.pack(len(payload)) + payload
