"""Connect to the daemon as memctl's options say, and send calls with the namespace and reach of the options."""

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from memoryd.client.errors import Forbidden, Unauthenticated
from memoryd.client.programs.memctl.output import make_printable, print_note, show
from memoryd.client.projects.project import current_namespace, namespace_of_environment
from memoryd.client.protocol import Call, MemoryOrigin, Reach, Redacted, Scoped, method_name
from memoryd.client.transport import paths
from memoryd.client.transport.exchange import OnProgress, greeting
from memoryd.client.transport.sync import Client

if TYPE_CHECKING:
    from memoryd.client.transport.subscription import Subscription

R = TypeVar("R")
C = TypeVar("C", bound=Call[Any])

_CONTEXT, _UNASKED = "get_context", "get_unasked"  # calls that return what an agent is shown
# Variables that agents set for their commands: Claude Code, Codex, Gemini CLI, Cursor, Copilot CLI, OpenCode, Cline.
AGENTS = (
    *("CLAUDECODE", "CODEX_SANDBOX", "CODEX_THREAD_ID", "GEMINI_CLI", "CURSOR_AGENT", "COPILOT_CLI", "OPENCODE"),
    "CLINE_ACTIVE",
)
_PLACED = frozenset(("add", "observe", "put", _CONTEXT, _UNASKED))  # calls that use the project's namespace by default


class OwnersClient(Client):
    """A client that presents the owner's token to a daemon that requires one, unless `MEMORYD_TOKEN` has another."""

    names_reach = False  # whether the user gave --reach

    def call(self, call: Call[R], on_progress: OnProgress | None = None) -> R:
        """Send one call; if the token is refused, repeat the call with the owner's, whose file the daemon names.

        If the socket is bound to a token, reach `all` is replaced by what the token may see.
        """
        try:
            return super().call(call, on_progress)
        except Unauthenticated as error:
            self._become_owner(error)
            return super().call(call, on_progress)
        except Forbidden:
            if self.names_reach or getattr(call, "reach", None) != "all":
                raise
            return super().call(msgspec.structs.replace(call, reach=None), on_progress)

    def subscribe(self, *args: Any, **options: Any) -> "Subscription":
        """Follow events; if the client's token, or having none, is refused, use the owner's token as `call` does."""
        try:
            return super().subscribe(*args, **options)
        except Unauthenticated as error:
            self._become_owner(error)
            return super().subscribe(*args, **options)

    def _become_owner(self, error: Unauthenticated) -> None:
        if os.environ.get("MEMORYD_TOKEN"):
            raise error
        self._greeting = greeting(paths.read_token(str(error.data.get("owner_token", ""))))
        self.close()


def client_for(args: argparse.Namespace, *, autostart: bool = True) -> Client:
    """Return a client; `autostart` is false for commands that need a running daemon."""
    autostart = autostart and not args.no_autostart
    client = OwnersClient(
        named_namespace(args) or "", socket=args.socket, token=own_token(), timeout_s=args.timeout, autostart=autostart
    )
    client.names_reach = getattr(args, "reach", None) is not None
    return client


def own_token() -> str:
    """Return the token that memctl presents: that of the environment, else the owner's; empty if there is neither."""
    return paths.environment_token() or paths.owner_token()


def send(args: argparse.Namespace, call: Call[R]) -> R:
    """Send one call and return its result."""
    with client_for(args) as client:
        result = client.call(apply_options(args, call))
    say_redacted(getattr(result, "redacted", {}), hasattr(args, "allow_secrets"))
    return result


def show_result(
    args: argparse.Namespace, call: Call[R], text: Callable[[R], str], shown: Callable[[R], Any] | None = None
) -> R:
    """Send one call and return its result; print it as text, or with --json the result or its part `shown`."""
    result = send(args, call)
    show(args, shown(result) if shown else result, lambda: text(result))
    return result


def ask_running(args: argparse.Namespace, call: Call[R]) -> R:
    """Send one call to a running daemon, without starting one."""
    with client_for(args, autostart=False) as client:
        return client.call(call)


def say_redacted(kinds: Redacted, can_allow: bool = True) -> None:
    """Print to stderr what was removed before storing, and the option that keeps it if the command has one."""
    if kinds:
        from memoryd.client.credentials.private import KIND

        instead = " --allow-secrets stores texts as they are." if can_allow and KIND not in kinds else ""
        print_note(f"memctl: removed before storing: {describe_credentials(kinds)}.{instead}")


def describe_credentials(kinds: Redacted) -> str:
    """Return kinds of credentials in a few words."""
    from memoryd.client.credentials import describe_kinds  # needed seldom

    return describe_kinds(kinds)


def apply_options(args: argparse.Namespace, call: C) -> C:
    """Return the call with the options' namespace, reach and `--allow-secrets`.

    If no namespace is given, calls that store something or look for a key, contexts, and calls with `--reach` use the
    project's namespace. All other calls are at the root and see everything.
    """
    if getattr(args, "allow_secrets", False):
        call = msgspec.structs.replace(call, allow_secrets=True)
    if not isinstance(call, Scoped):
        return call
    namespace, reach = named_namespace(args), reach_of(args)
    if namespace is None and _is_placed(args, call):
        namespace = current_namespace(note=method_name(type(call)) != _UNASKED)  # a preview must not add the project
        # An agent in a project does not see everything, and what it is shown automatically is limited at the root too.
        if method_name(type(call)) == _UNASKED or (namespace and method_name(type(call)) == _CONTEXT):
            reach = getattr(args, "reach", None)
    return msgspec.structs.replace(call, namespace=namespace or "", reach=reach)


def _is_placed(args: argparse.Namespace, call: Scoped[Any]) -> bool:
    """Return whether a call without a given namespace is for the project's namespace."""
    has_key = bool(getattr(call, "key", "") or getattr(call, "keys", []))
    return has_key or method_name(type(call)) in _PLACED or getattr(args, "reach", None) not in (None, "all")


def named_namespace(args: argparse.Namespace) -> str | None:
    """Return the namespace that the option, else the environment, sets; None if neither does. `/` is the root."""
    return namespace_of_environment() if args.namespace is None else str(args.namespace).strip("/")


def own_origin() -> MemoryOrigin:
    """Return whose words a command stores: a person's, unless a variable shows that an agent runs it."""
    return "agent" if any(os.environ.get(name) for name in AGENTS) else "person"


def check_person(what: str) -> None:
    """Raise `Forbidden` if an agent runs a command that only a person may run."""
    if own_origin() != "person":
        raise Forbidden(f"{what} in a terminal of your own: an agent runs this shell.")


def namespace_of(args: argparse.Namespace) -> str:
    """Return the namespace that a command stores in: the given one, else the project's, else the root."""
    namespace = named_namespace(args)
    return current_namespace() if namespace is None else namespace


def describe_project(args: argparse.Namespace) -> str:
    """Return ` in NAMESPACE` if a command stores in the project's namespace by default, otherwise an empty text."""
    here = "" if named_namespace(args) is not None else current_namespace()
    return f" in {make_printable(here)}" if here else ""


def reach_of(args: argparse.Namespace) -> Reach | None:
    """Return the reach of a command: `all`, `visible` with a namespace, None with a token, which has its own bounds."""
    reach: Reach | None = getattr(args, "reach", None)
    if os.environ.get("MEMORYD_TOKEN"):
        return reach
    namespace = os.environ.get("MEMORYD_NAMESPACE") if args.namespace is None else args.namespace
    return reach or ("visible" if namespace else "all")
