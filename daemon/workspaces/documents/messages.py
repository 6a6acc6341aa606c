"""The messages between the daemon and its reading child: requests and replies, as msgpack."""

import msgspec
from msgspec import Struct

from memoryd.daemon.workspaces.documents.document import Document, Limits, Scan


class Read(Struct, tag="read"):
    """Read a file."""

    root: str
    relative: str
    limits: Limits


class Walk(Struct, tag="walk"):
    """Scan a folder."""

    root: str
    globs: list[str]


class ReaderReply(Struct, omit_defaults=True):
    """A document (None: the file no longer exists), the result of a scan, or an error's code and message."""

    document: Document | None = None
    scan: Scan | None = None
    error: tuple[str, str] | None = None


encoder = msgspec.msgpack.Encoder()
requests: msgspec.msgpack.Decoder[Read | Walk] = msgspec.msgpack.Decoder(Read | Walk)
replies = msgspec.msgpack.Decoder(ReaderReply)
