"""The way to the daemon: a client as the options say, and calls placed at the namespace and reach they name."""

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from memoryd.client.errors import Forbidden, Unauthenticated
from memoryd.client.programs.memctl.output import make_printable, print_note, show
from memoryd.client.projects import known as projects
from memoryd.client.projects.project import current_namespace, namespace_of_environment
from memoryd.client.protocol import Call, MemoryOrigin, Reach, Redacted, Scoped, method_name
from memoryd.client.transport import paths
from memoryd.client.transport.exchange import OnProgress, greeting
from memoryd.client.transport.sync import Client

if TYPE_CHECKING:
    from memoryd.client.transport.subscription import Subscription

R = TypeVar("R")
C = TypeVar("C", bound=Call[Any])

_CONTEXT, _UNASKED = "get_context", "get_unasked"  # what an agent gets
# What agents set for the commands that they run: Claude Code, Codex, Gemini CLI, Cursor, Copilot CLI, OpenCode, Cline.
AGENTS = (
    *("CLAUDECODE", "CODEX_SANDBOX", "CODEX_THREAD_ID", "GEMINI_CLI", "CURSOR_AGENT", "COPILOT_CLI", "OPENCODE"),
    "CLINE_ACTIVE",
)
_PLACED = frozenset(("add", "observe", "put", _CONTEXT, _UNASKED))


class OwnersClient(Client):
    """A client that presents the owner's token to a daemon that wants one, unless `MEMORYD_TOKEN` says who it is."""

    names_reach = False  # whether the user named the reach of the call

    def call(self, call: Call[R], on_progress: OnProgress | None = None) -> R:
        """Send one call; if the token at hand is not the daemon's, try the one that the daemon names, or none.

        Where the socket is bound to a token, everything means what that may see.
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
        """Follow events; as `call`, try the owner's token when none or another is refused."""
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
    """Return a client; `autostart` false is for commands that make no sense with a daemon started for them."""
    autostart = autostart and not args.no_autostart
    if not args.json:
        _introduce_places()
    client = OwnersClient(
        named_namespace(args) or "", socket=args.socket, token=own_token(), timeout_s=args.timeout, autostart=autostart
    )
    client.names_reach = getattr(args, "reach", None) is not None
    return client


def _introduce_places() -> None:
    """Say once, to who used memctl when it kept everything at the root, where memories go now."""
    if not os.environ.get("MEMORYD_TOKEN") and projects.note_introduced(paths.data_folder()):
        print_note(
            "memctl: new in this version: in a project (a git checkout, or a folder where an agent has worked)"
            " `memctl add` and the Python client keep memories in the project's namespace, as agents do; before, they"
            " kept them at the root. `--namespace /` is the root: yours, whatever the project. This is said once."
        )


def own_token() -> str:
    """Return the token that memctl presents: of the environment, else the owner's, empty if there is none."""
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
    """Send one call and return its result; print it as text, or with --json as it is or what `shown` takes of it."""
    result = send(args, call)
    show(args, shown(result) if shown else result, lambda: text(result))
    return result


def ask_running(args: argparse.Namespace, call: Call[R]) -> R:
    """Send one call to a daemon that runs already."""
    with client_for(args, autostart=False) as client:
        return client.call(call)


def say_redacted(kinds: Redacted, can_allow: bool = True) -> None:
    """Say on stderr what was removed before it was stored, and how to keep it if the command has the option."""
    if kinds:
        from memoryd.client.credentials.private import KIND

        instead = " --allow-secrets stores texts as they are." if can_allow and KIND not in kinds else ""
        print_note(f"memctl: removed before storing: {describe_credentials(kinds)}.{instead}")


def describe_credentials(kinds: Redacted) -> str:
    """Return kinds of credentials in a few words."""
    from memoryd.client.credentials import describe_kinds  # needed seldom

    return describe_kinds(kinds)


def apply_options(args: argparse.Namespace, call: C) -> C:
    """Return the call with the namespace and the reach of the options; `--allow-secrets` lets it store credentials.

    Without a namespace, calls that store something or look for a key, contexts, and calls with `--reach` use that of
    the project. The others see everything, so they are at the root.
    """
    if getattr(args, "allow_secrets", False):
        call = msgspec.structs.replace(call, allow_secrets=True)
    if not isinstance(call, Scoped):
        return call
    namespace, reach = named_namespace(args), reach_of(args)
    if namespace is None and _is_placed(args, call):
        namespace = current_namespace(note=method_name(type(call)) != _UNASKED)  # which only looks
        # What an agent gets there is not all there is, and at a start or a prompt not so at the root either.
        if method_name(type(call)) == _UNASKED or (namespace and method_name(type(call)) == _CONTEXT):
            reach = getattr(args, "reach", None)
    return msgspec.structs.replace(call, namespace=namespace or "", reach=reach)


def _is_placed(args: argparse.Namespace, call: Scoped[Any]) -> bool:
    """Return whether a call is about one place, though none is named."""
    has_key = bool(getattr(call, "key", "") or getattr(call, "keys", []))
    return has_key or method_name(type(call)) in _PLACED or getattr(args, "reach", None) not in (None, "all")


def named_namespace(args: argparse.Namespace) -> str | None:
    """Return the namespace of the option, else of the environment; None where neither names one. `/` is the root."""
    return namespace_of_environment() if args.namespace is None else str(args.namespace).strip("/")


def own_origin() -> MemoryOrigin:
    """Return whose words a command brings: a person's, unless an agent runs it in its shell and says so there."""
    return "agent" if any(os.environ.get(name) for name in AGENTS) else "person"


def check_person(what: str) -> None:
    """Raise `Forbidden` where an agent runs a command that only a person may give."""
    if own_origin() != "person":
        raise Forbidden(f"{what} in a terminal of your own: an agent runs this shell.")


def namespace_of(args: argparse.Namespace) -> str:
    """Return where something is kept: the namespace that is named, else the project's, else the root."""
    namespace = named_namespace(args)
    return current_namespace() if namespace is None else namespace


def describe_project(args: argparse.Namespace) -> str:
    """Return ` in NAMESPACE` where something is kept in the project's because none is named, else nothing."""
    here = "" if named_namespace(args) is not None else current_namespace()
    return f" in {make_printable(here)}" if here else ""


def reach_of(args: argparse.Namespace) -> Reach | None:
    """Return what the command sees: all of it, with a namespace what is visible from there, with a token its bounds."""
    reach: Reach | None = getattr(args, "reach", None)
    if os.environ.get("MEMORYD_TOKEN"):
        return reach
    namespace = os.environ.get("MEMORYD_NAMESPACE") if args.namespace is None else args.namespace
    return reach or ("visible" if namespace else "all")
