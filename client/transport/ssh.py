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
    """Return the command that exchanges frames with the daemon of a server on stdin and stdout, with a token."""
    return build_command(server, f"{memctl} serve-stdio {shlex.quote(token)}")


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
            return read_greeting(name, decode_reply(payload))
    except BadFrame:
        pass
    if done.stdout:
        raise Unavailable(say_no_memoryd(name))
    raise Unavailable(explain(name, done.stderr, ""))


def read_greeting(name: str, reply: Reply) -> Greeting:
    """Return the greeting in a server's first frame; raise its refusal, or `BadFrame` if it is not a greeting."""
    if reply.id:
        raise BadFrame("The first frame is no greeting.")
    if reply.kind == ERROR:
        error = error_of(reply)
        if isinstance(error, NotFound):
            raise NotFound(f"{error.message} There: memctl token add {name} --namespace {name}")
        raise error
    try:
        greeting = msgspec.msgpack.decode(reply.body, type=Greeting)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadFrame(str(error)) from None
    if greeting.protocol != PROTOCOL_VERSION:
        where = "here" if greeting.protocol > PROTOCOL_VERSION else "there"
        raise VersionMismatch(
            f"The place of {name} speaks version {greeting.protocol} of the protocol, this machine"
            f" {PROTOCOL_VERSION}: update memoryd {where}."
        )
    return greeting


def say_no_memoryd(name: str) -> str:
    """Return the error message for a server whose output is not frames."""
    return (
        f"What answers at the place of {name} is no memoryd: it sends no frames of it. A shell there that prints"
        " something at its start does so, too."
    )


def explain(name: str, said: bytes, otherwise: str) -> str:
    """Return the error message for a failed connection: the last line of ssh or the remote shell, and advice."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    told = lines[-1] if lines else otherwise or "it ended the line"
    told = "".join(filter(str.isprintable, told))[:_TOLD_CHARS].rstrip(".")
    if any("invalid choice" in line for line in lines):
        return f"memctl at the place of {name} has no serve-stdio: update memoryd there."
    helps = "; `ssh HOST true` has to work without a question"
    if "not found" in told or "No such file" in told:
        helps = "; say where memctl is there with `memctl shared join --memctl PATH`"
    return f"The place of {name} cannot be reached: {told}{helps if lines else ''}."
