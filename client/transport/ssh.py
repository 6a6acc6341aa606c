"""Connect to a daemon on another machine: start `memctl serve-stdio` there through ssh, and read its greeting."""

import re
import shlex
import subprocess
from urllib.parse import urlsplit

import msgspec

from memoryd.client.errors import BadFrame, NotFound, TimedOut, Unavailable, VersionMismatch
from memoryd.client.patterns import compile_late
from memoryd.client.protocol import ERROR, PROTOCOL_VERSION, Reply
from memoryd.client.protocol.shared import Greeting
from memoryd.client.transport.exchange import decode_reply, error_of
from memoryd.client.transport.frames import FrameReader

_OPTIONS = ("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15")
_TOLD_CHARS = 300
_ADDRESS = compile_late(r"ssh://(\w[\w.-]*@)?\w[\w.-]*(:\d{1,5})?/?", re.ASCII)


def is_address(server: str) -> bool:
    """Return whether a text is the address of a machine, such as ssh://user@host:2222."""
    return _ADDRESS.fullmatch(server) is not None


def build_command(server: str, remote: str) -> list[str]:
    """Return the ssh command that runs `remote` on a server, such as ssh://user@host:2222."""
    address = urlsplit(server)
    host = f"{address.username}@{address.hostname}" if address.username else str(address.hostname)
    port = ["-p", str(address.port)] if address.port else []
    return ["ssh", *_OPTIONS, *port, "--", host, remote]


def build_line_command(server: str, memctl: str, token: str) -> list[str]:
    """Return the command that exchanges frames with a server's daemon on stdin and stdout, with a token's rights."""
    return build_command(server, f"{memctl} serve-stdio {shlex.quote(token)}")


def build_owner_command(host: str, memctl: str) -> list[str]:
    """Return the command that exchanges frames with a host's daemon, with the owner's rights."""
    return ["ssh", *_OPTIONS, "--", host, f"{memctl} serve-stdio"]


def place_of(name: str) -> str:
    """Return the phrase by which messages name the machine that has a root."""
    return f"The place of {name}"


def ask_greeting(name: str, command: list[str], limit_s: float) -> Greeting:
    """Return the greeting of the server of the root `name`; raise an error with one sentence if there is none."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise TimedOut(f"The place of {name} says nothing for {limit_s:g} s.") from None
    except OSError as error:
        raise Unavailable(f"{command[0]} cannot be started: {error.strerror}.") from None
    try:
        for payload in FrameReader().feed(done.stdout):
            return read_greeting(place_of(name), decode_reply(payload), name)
    except BadFrame:
        pass
    if done.stdout:
        raise Unavailable(say_no_memoryd(place_of(name)))
    raise Unavailable(explain(place_of(name), done.stderr, ""))


def read_greeting(place: str, reply: Reply, name: str = "") -> Greeting:
    """Return the greeting in a server's first frame; raise its refusal, or `BadFrame` if it is not a greeting.

    `name` is the root's name, which is also that of its token unless the configuration names another one.
    """
    if reply.id:
        raise BadFrame("The first frame is no greeting.")
    if reply.kind == ERROR:
        error = error_of(reply)
        if name and isinstance(error, NotFound):
            raise NotFound(f"{error.message} There: memctl token add {name} --namespace {name}")
        raise error
    try:
        greeting = msgspec.msgpack.decode(reply.body, type=Greeting)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadFrame(str(error)) from None
    if greeting.protocol != PROTOCOL_VERSION:
        where = "here" if greeting.protocol > PROTOCOL_VERSION else "there"
        raise VersionMismatch(
            f"{place} speaks version {greeting.protocol} of the protocol, this machine"
            f" {PROTOCOL_VERSION}: update memoryd {where}."
        )
    return greeting


def say_no_memoryd(place: str) -> str:
    """Return the error message for a server whose output is not frames."""
    return (
        f"{place} answers, but what answers is no memoryd: it sends no frames of it. A shell there that prints"
        " something at its start does so, too."
    )


def explain(place: str, said: bytes, otherwise: str, command: str = "memctl shared join") -> str:
    """Return the error message for a failed connection: the last line of ssh or the remote shell, and advice.

    `command` is the memctl command whose option `--memctl` the advice names.
    """
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    told = lines[-1] if lines else otherwise or "it ended the line"
    told = "".join(filter(str.isprintable, told))[:_TOLD_CHARS].rstrip(".")
    if any("invalid choice" in line or "TOKEN is missing" in line for line in lines):
        return f"{place} has an older memctl, which cannot serve this: update memoryd there."
    helps = "; `ssh HOST true` has to work without a question"
    if "not found" in told or "No such file" in told:
        helps = f"; say where memctl is there with `{command} --memctl PATH`"
    return f"{place} cannot be reached: {told}{helps if lines else ''}."
