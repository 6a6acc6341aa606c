"""The daemon's side of the envelope: it turns frames into calls, and results and errors into frames. No I/O here.

If a reply is over the limit of a frame, its longest texts are shortened, each with a mark. The limit for one text is
the highest with which all texts fit, so the shorter texts stay whole.
"""

import gc
import logging
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple, Union

import msgspec

import memoryd
from memoryd.client import protocol
from memoryd.client.errors import BadFrame, Internal, Invalid, MemorydError, Unavailable, UnknownMethod, VersionMismatch
from memoryd.client.protocol import MAX_FRAME_BYTES, MAX_METADATA_DEPTH, RESULT, Call, Request, method_name
from memoryd.client.transport.frames import frame
from memoryd.client.validation import explain_misfit

log = logging.getLogger(__name__)

_NIL = b"\xc0"


class EncodedReply(NamedTuple):
    """The frame of a reply, and whether it is an error."""

    data: bytes
    failed: bool


class _Tagged(msgspec.Struct):
    """A call of which only the name of its method is decoded."""

    method: Any = None


class _RawMetadata(msgspec.Struct, frozen=True):
    """The metadata of a call or a memory, not decoded."""

    metadata: msgspec.Raw = msgspec.Raw()
    values: msgspec.Raw = msgspec.Raw()


class _Record(_RawMetadata, frozen=True):
    """The metadata of a memory to import, which may have a key."""

    key: msgspec.Raw = msgspec.Raw(_NIL)


class _Skimmed(_RawMetadata, frozen=True):
    """Where a call holds metadata."""

    method: str = ""
    memory: _RawMetadata = _RawMetadata()
    memories: list[_RawMetadata] = []
    records: list[_Record] = []


_request = msgspec.msgpack.Decoder(Request)
_call = msgspec.msgpack.Decoder(Union[protocol.METHODS])  # noqa: UP007
_tagged = msgspec.msgpack.Decoder(_Tagged)
_encode_into = msgspec.msgpack.Encoder().encode_into
_skimmed = msgspec.msgpack.Decoder(_Skimmed)
_SHAPES = {method_name(method): method for method in protocol.METHODS}
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError)
_MAX_HEAD_BYTES = 1 + 9 + 9  # of an array and two integers
_SPARE_BYTES = 1024  # headers of long objects have more bytes in msgpack than the limit of metadata counts
_MAX_SENTENCE = 1000  # characters of an error's message, which may quote what the client sent
_MAX_ERROR_DATA_BYTES = 64 * 1024
FIT_BYTES = 4 * 1024 * 1024  # size to which a reply is shortened that was too large
_MIN_TEXT_BYTES = 256  # no text is shortened below this
_MARK = " … [shortened, {:,} bytes in all; `get` returns the whole]"


def read_call(payload: bytes, is_stopping: bool) -> tuple[int, Call[Any] | MemorydError]:
    """Return the id of the request in a frame (0 if it has none), and its call or the error to answer with."""
    request_id = 0
    try:
        request = decode_request(payload)
        request_id = request.id
        if is_stopping:  # checked first, because the successor may know methods that this daemon does not know
            return request_id, stopping_error()
        return request_id, call_of(request)
    except MemorydError as error:
        return request_id, error


def decode_request(payload: bytes) -> Request:
    """Return the request in a frame; raise `BadFrame`."""
    try:
        return _request.decode(payload)
    except RecursionError:
        return _decode_deep_request(payload)
    except _UNREADABLE as error:
        raise BadFrame(f"A frame is not a request [version, id, call]: {error}.") from None


def call_of(request: Request) -> Call[Any]:
    """Return the call of a request; raise an error that says why the call does not fit the contract."""
    collects = gc.isenabled()
    gc.disable()  # decoding creates no garbage, and collecting makes it ten times slower for a million small values
    try:
        return _call_of(request)
    except RecursionError:
        raise Invalid(f"The call is nested too deeply; metadata may be nested {MAX_METADATA_DEPTH} deep.") from None
    finally:
        if collects:
            gc.enable()


def _call_of(request: Request) -> Call[Any]:
    if request.version != protocol.PROTOCOL_VERSION and _find_method(request.call) not in protocol.UNVERSIONED:
        versions = {"protocol": protocol.PROTOCOL_VERSION, "version": memoryd.__version__}
        raise VersionMismatch(_version_advice(request.version), versions)
    _check_metadata_bytes(request.call)
    try:
        call: Call[Any] = _call.decode(request.call)
        return call
    except msgspec.ValidationError as error:
        raise _explain_misfit(request.call, error) from None
    except _UNREADABLE as error:
        raise BadFrame(f"The call is not valid msgpack: {error}.") from None


def _check_metadata_bytes(call: msgspec.Raw) -> None:
    """Refuse metadata over the limit before it is decoded: millions of small values would hold up the event loop.

    Except for the headers of long objects, a value has no more bytes as msgpack than the exact check counts later. The
    metadata of a memory with a key may contain a value of some MiB.
    """
    if len(call) <= protocol.MAX_METADATA_BYTES:
        return
    try:
        skimmed = _skimmed.decode(call)
    except _UNREADABLE:
        return  # the decoder of the whole call will raise an error that says what does not fit
    has_key = {id(record) for record in skimmed.records if bytes(record.key) != _NIL}
    if skimmed.method == method_name(protocol.Put):
        has_key.add(id(skimmed.memory))
    for holder in (skimmed, skimmed.memory, *skimmed.memories, *skimmed.records):
        size, limit = max(len(holder.metadata), len(holder.values)), protocol.MAX_METADATA_BYTES
        if id(holder) in has_key:
            limit = protocol.MAX_VALUE_BYTES
        if size > limit + _SPARE_BYTES:
            raise Invalid(f"The metadata is about {size} bytes; the limit is {limit}.")


def progress(request_id: int, event: protocol.Progress | protocol.Event) -> bytes:
    """Return the reply frame of a progress event."""
    return frame(_encode((protocol.PROGRESS, request_id, event)))


def answer(request_id: int, outcome: Any) -> EncodedReply:
    """Return the reply frame of a result, an error, or a future that is done."""
    try:
        result = outcome.result() if isinstance(outcome, Future) else outcome
        if isinstance(result, BaseException):
            raise result
        data = _encode((RESULT, request_id, result))
        if len(data) > MAX_FRAME_BYTES:
            data = _encode((RESULT, request_id, shorten(result, len(data))))
        return EncodedReply(frame(data), False)
    except BaseException as error:
        return _encode_failure(request_id, error)


def _encode(value: Any) -> bytearray:
    """Return a value as msgpack, or raise `MemoryError`, where `msgspec.msgpack.encode` would end the process."""
    buffer = bytearray()
    _encode_into(value, buffer)
    return buffer


def shorten(result: Any, count_bytes: int) -> Any:
    """Return a result as plain values with its longest texts cut, and `content_bytes` beside each cut `content`.

    Raise `Invalid` if that is not enough, because the result has too many parts.
    """
    plain = msgspec.to_builtins(result, builtin_types=(bytes,))
    sizes = sorted(len(text.encode("utf-8", "surrogatepass")) for text in _find_texts(plain))
    limit = _limit(sizes, FIT_BYTES - (count_bytes - sum(sizes)))
    if limit < _MIN_TEXT_BYTES:
        raise Invalid(f"The reply would have {count_bytes:,} bytes in too many parts; ask for fewer with `limit`.")
    return _cut(plain, limit)


def _find_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _find_texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _find_texts(inner)


def _limit(sizes: list[int], room: int) -> int:
    """Return how many bytes each text may have so that all of them fit; `sizes` must be sorted."""
    for place, size in enumerate(sizes):
        share = room // (len(sizes) - place)
        if size > share:
            return share
        room -= size
    return max(sizes, default=0)


def _cut(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return _shorten(value, limit)
    if isinstance(value, list | tuple):
        return [_cut(inner, limit) for inner in value]
    if not isinstance(value, dict):
        return value
    cut = {key: _cut(inner, limit) for key, inner in value.items()}
    if "content_bytes" in value and cut["content"] != value["content"]:
        cut["content_bytes"] = len(value["content"].encode("utf-8", "surrogatepass"))
    return cut


def _shorten(text: str, limit: int) -> str:
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return text
    mark = _MARK.format(len(data))
    return data[: max(0, limit - len(mark.encode()))].decode("utf-8", "ignore") + mark


def _encode_failure(request_id: int, error: BaseException) -> EncodedReply:
    """Return the reply frame of an error that a handler raised; unexpected errors are logged."""
    if not isinstance(error, MemorydError):
        log.error("a call failed", exc_info=error)
        is_memory = isinstance(error, MemoryError)
        sentence = "has not enough memory for this call" if is_memory else f"failed: {type(error).__name__}"
        error = Internal(f"The daemon {sentence}. Its log has the details.")
    return EncodedReply(encode_refusal(request_id, error), True)


def encode_refusal(request_id: int, error: MemorydError) -> bytes:
    """Return the reply frame of an error; texts quoted from the request are cut, so that the frame always fits."""
    message = error.message if len(error.message) <= _MAX_SENTENCE else error.message[:_MAX_SENTENCE] + " …"
    data = msgspec.Raw(_encode(error.data))
    if len(data) > _MAX_ERROR_DATA_BYTES:
        data = msgspec.Raw(_encode({}))
    return frame(_encode((protocol.ERROR, request_id, error.code, message, data)))


def _explain_misfit(call: msgspec.Raw, error: msgspec.ValidationError) -> MemorydError:
    """Return the error for a call that does not fit the contract: its method is unknown, or its fields are wrong."""
    method = _find_method(call)
    if method is None:
        return BadFrame(f"The call is not a map with a method: {error}.")
    if method not in _SHAPES:
        return UnknownMethod(f"There is no method {method[:80]!r}.", {"methods": sorted(_SHAPES)})
    reason = explain_misfit(error, _SHAPES[method])
    return Invalid(f"{reason[0].upper()}{reason[1:]}.")


def _decode_deep_request(payload: bytes) -> Request:
    """Return the request in a frame that is nested too deeply to be decoded, so that it can be refused by its id.

    Its head has the number of bytes that become a request when nil is appended as the call; no other number does.
    """
    for size in range(3, _MAX_HEAD_BYTES + 1):
        with suppress(*_UNREADABLE):
            head = _request.decode(payload[:size] + _NIL)
            return Request(head.version, head.id, msgspec.Raw(payload[size:]))
    raise BadFrame("A frame is nested too deeply and is not a request [version, id, call].")


def _find_method(call: msgspec.Raw) -> str | None:
    """Return the method of a call that does not fit the contract, or None if it names no method."""
    try:
        method = _tagged.decode(call).method
    except _UNREADABLE:
        return None
    return method if isinstance(method, str) else None


def _version_advice(version: int) -> str:
    who = "newer" if version > protocol.PROTOCOL_VERSION else "older"
    advice = "restart the daemon: memctl down && memctl up" if who == "newer" else "upgrade the client"
    return f"The client speaks protocol {version}, {who} than this daemon's {protocol.PROTOCOL_VERSION}; {advice}."


def stopping_error() -> Unavailable:
    """Return the error for calls and connections that come while the daemon stops; nothing was done for them."""
    return Unavailable("The daemon is stopping.", {"retry_after_ms": 100})


FAREWELL = encode_refusal(0, stopping_error())
