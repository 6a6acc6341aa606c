"""Encode calls and decode replies, for both clients. No I/O here."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec

import memoryd
from memoryd.client import protocol
from memoryd.client.errors import BadFrame, Busy, Invalid, MemorydError, Unavailable, error_for
from memoryd.client.protocol import PROTOCOL_VERSION, Call, Progress, Reply, Request
from memoryd.client.transport.frames import frame

R = TypeVar("R")
T = TypeVar("T")
S = TypeVar("S", bound=Call[Any])
OnProgress = Callable[[Progress], None]

CONNECT_PAUSE_S = 0.01  # between attempts while the daemon's queue of connections is full

SILENT = {  # key: whether the call only reads
    True: "The daemon did not reply within {:g} s. The call only reads: repeat it.",
    False: "The daemon did not reply within {:g} s; a change may or may not have been made. Read, then repeat it.",
}
BROKEN = "The connection broke before the reply; the change may or may not have been made. Read, then repeat it."
ENDING_S = 2.0  # how long a killed daemon may still accept connections, which then break without a reply


class BrokenStream(Exception):
    """The stream to the daemon ended or failed before the reply.

    `heard` is whether the daemon ever sent anything on it. The daemon answers the greeting before it executes the first
    call, so a call on a stream without any reply was not executed.
    """

    def __init__(self, reason: str, heard: bool) -> None:
        super().__init__(reason)
        self.heard = heard


# Ids that calls do not use: the greeting is sent together with the first call, and its replies are not awaited.
TOKEN_ID = protocol.MAX_INTEGER
HELLO_ID = protocol.MAX_INTEGER - 1

_encoder = msgspec.msgpack.Encoder()
_reply_decoder = msgspec.msgpack.Decoder(Reply)
_code_decoder = msgspec.msgpack.Decoder(str)
_progress_decoder = msgspec.msgpack.Decoder(Progress)


@cache
def _result_decoder(method: type[Call[Any]]) -> msgspec.msgpack.Decoder[Any]:
    """Return the decoder of a method's results, created on first use: a command needs only one of them."""
    return msgspec.msgpack.Decoder(protocol.result_type(method))


@cache
def _event_decoder() -> "msgspec.msgpack.Decoder[protocol.Event]":
    return msgspec.msgpack.Decoder(protocol.Event)


def encode_call(call: Call[Any], request_id: int) -> bytes:
    """Return the request frame of a call; raise `Invalid` for values that msgpack or UTF-8 cannot represent."""
    try:
        payload = _encoder.encode(Request(PROTOCOL_VERSION, request_id, msgspec.Raw(_encoder.encode(call))))
    except UnicodeEncodeError:
        raise Invalid("The text holds lone surrogates, which are not Unicode characters; remove them.") from None
    except RecursionError:
        raise Invalid(f"The metadata is nested deeper than {protocol.MAX_METADATA_DEPTH}.") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise Invalid(f"The call cannot be encoded: {error}.") from None
    return frame(payload)


def greeting(token: str) -> bytes:
    """Return the frames that precede the first call of a connection: the client's version and its token, if any."""
    hello = encode_call(protocol.Hello(version=memoryd.__version__), HELLO_ID)
    return hello + encode_call(protocol.Authenticate(token=token), TOKEN_ID) if token else hello


def is_greeting(reply: Reply) -> bool:
    """Return whether a reply answers the greeting; raise the error if the token was refused."""
    if reply.id not in (HELLO_ID, TOKEN_ID):
        return False
    if reply.kind == protocol.ERROR and reply.id == TOKEN_ID:
        raise error_of(reply)
    return True


def decode_reply(payload: bytes) -> Reply:
    """Return the envelope of a reply frame."""
    return _decode(_reply_decoder, payload)


def progress_of(reply: Reply) -> Progress | None:
    """Return the event of a progress reply, None for a final one."""
    return _decode(_progress_decoder, reply.body) if reply.kind == protocol.PROGRESS else None


def event_of(reply: Reply) -> "protocol.Event | None":
    """Return the event in a reply to a subscription, None for the final reply."""
    return _decode(_event_decoder(), reply.body) if reply.kind == protocol.PROGRESS else None


def result_of(call: Call[R], reply: Reply) -> R:
    """Return the result of a final reply or raise its error."""
    if reply.kind == protocol.ERROR:
        raise error_of(reply)
    result: R = _decode(_result_decoder(type(call)), reply.body)
    return result


def error_of(reply: Reply) -> MemorydError:
    """Return the error in an error reply."""
    return error_for(_decode(_code_decoder, reply.body), reply.message, reply.data)


def retry_after_s(error: MemorydError) -> float | None:
    """Return the delay before a refused call may be repeated, None if it may not; a refused call had no effect."""
    delay_ms = error.data.get("retry_after_ms", 50 if isinstance(error, Busy) else None)
    return delay_ms / 1000 if isinstance(delay_ms, int | float) else None


class Breaks:
    """Decides whether a call is repeated after its connection broke.

    A call that only reads is repeated once, since executing it twice is harmless. A call that was not executed, because
    the daemon had sent nothing, is repeated for as long as a daemon may take to end.
    """

    def __init__(self, call: Call[Any]) -> None:
        self._reads = protocol.DECLARED[type(call)].reads
        self._heard = 0
        self._give_up_at = math.inf

    def next_pause_s(self, broken: BrokenStream, now: float) -> float:
        """Return the delay before the call is repeated; raise `Unavailable` if it may not be repeated."""
        if broken.heard and not self._reads:
            raise Unavailable(BROKEN) from None
        is_first = self._give_up_at == math.inf
        self._give_up_at = min(self._give_up_at, now + ENDING_S)
        self._heard += broken.heard
        if self._heard > 1 or now > self._give_up_at:
            advice = "The call only reads: repeat it." if self._reads else "Nothing was changed: repeat it."
            raise Unavailable(f"The connection to the daemon broke again: {broken}. {advice}") from None
        return 0.0 if is_first else CONNECT_PAUSE_S


def _decode(decoder: msgspec.msgpack.Decoder[T], data: bytes | msgspec.Raw) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadFrame(f"The daemon's reply cannot be read: {error}.") from None


def set_namespace(call: S, namespace: str) -> S:
    """Set the namespace of the client in a call that has none."""
    if namespace and isinstance(call, protocol.Scoped) and not call.namespace:
        return msgspec.structs.replace(call, namespace=namespace)
    return call
