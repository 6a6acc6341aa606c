"""Who may call what: one rule for each method, applied in one place before any handler runs.

`anyone`: also a connection that has presented no token where one is required.
`within`: a caller bound by a token is placed in its namespace; it may name one inside, and no reach beyond its own.
`outward`: the same for what adds memories, which may also go to an enclosing namespace.
`owner`: the machine's user only.

What a rule lets through is bounded by namespace and reach, so a handler that obeys these needs to know nothing more.
One that changes memories asks the caller (`Caller.check_change`) about each, and one that counts beyond memories leaves
that out for a bound caller.
"""

from typing import Any, Literal, TypeVar

import msgspec

from memoryd.client.errors import Forbidden, Unauthenticated
from memoryd.client.protocol import (
    METHODS,
    Add,
    AddMany,
    AddToken,
    AddWorkspace,
    Authenticate,
    Backup,
    Call,
    CompleteTask,
    Consolidate,
    CountTokens,
    Delete,
    DiffWorkspaces,
    Dream,
    EndSession,
    Explain,
    ExportMemories,
    Feedback,
    Forget,
    Get,
    GetContext,
    GetStats,
    GetStatus,
    GetTrace,
    GetWorkspace,
    GraphAbstract,
    GraphDedupe,
    GraphEdges,
    GraphExport,
    GraphNode,
    GraphNodes,
    GraphRegroup,
    GraphTopics,
    Hello,
    History,
    ImportMemories,
    IndexWorkspace,
    JobHistory,
    Jobs,
    List,
    ListTokens,
    Observe,
    Operations,
    PauseJob,
    Remember,
    RemoveWorkspace,
    ResetSession,
    Restart,
    ResumeJob,
    RevokeToken,
    RunJob,
    Scoped,
    Search,
    Seed,
    Share,
    Shutdown,
    Skipped,
    Subscribe,
    Summarize,
    Tag,
    Tiers,
    Turns,
    Undo,
    Update,
    UseModel,
    Verify,
    WhyNot,
    Workspaces,
    method_name,
)
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.namespaces import enclosing
from memoryd.daemon.store.tokens import Tokens

Rule = Literal["anyone", "within", "outward", "owner"]
C = TypeVar("C", bound=Call[Any])

RULES: dict[type[Call[Any]], Rule] = {
    Add: "outward",
    AddMany: "outward",
    Get: "within",
    List: "within",
    Update: "within",
    Tag: "within",
    Delete: "within",
    Feedback: "within",
    Share: "within",
    History: "within",
    Operations: "within",
    Undo: "within",
    Observe: "outward",
    EndSession: "outward",
    ResetSession: "within",
    CompleteTask: "outward",
    Turns: "within",
    Skipped: "within",
    Tiers: "within",
    Consolidate: "owner",
    Seed: "owner",
    Search: "within",
    Explain: "within",
    GetTrace: "within",
    GetContext: "within",
    CountTokens: "within",
    WhyNot: "within",
    GetStatus: "anyone",
    GetStats: "within",
    UseModel: "owner",
    Verify: "owner",
    Backup: "owner",
    Shutdown: "owner",
    Restart: "owner",
    Hello: "anyone",
    Authenticate: "anyone",
    AddToken: "owner",
    ListTokens: "owner",
    RevokeToken: "owner",
    Jobs: "owner",
    JobHistory: "owner",
    RunJob: "owner",
    PauseJob: "owner",
    ResumeJob: "owner",
    GraphNodes: "within",
    GraphEdges: "within",
    GraphNode: "within",
    GraphTopics: "within",
    GraphExport: "within",
    GraphDedupe: "owner",
    GraphAbstract: "owner",
    GraphRegroup: "owner",
    ExportMemories: "within",
    ImportMemories: "owner",
    AddWorkspace: "owner",
    RemoveWorkspace: "owner",
    Workspaces: "owner",
    GetWorkspace: "owner",
    IndexWorkspace: "owner",
    Remember: "within",
    Forget: "within",
    DiffWorkspaces: "owner",
    Dream: "owner",
    Summarize: "within",
    Subscribe: "within",
}


def check() -> None:
    """Refuse to start while a method of the contract has no rule."""
    missing = [method_name(method) for method in METHODS if method not in RULES]
    if missing:
        raise RuntimeError(f"no rule in access.RULES for: {', '.join(missing)}")


def admit(call: C, caller: Caller, tokens: Tokens) -> C:
    """Return the call as this caller may make it, raise `Forbidden` or `Unauthenticated`.

    The answer depends on the call and the token alone, never on what is stored.
    """
    rule = RULES[type(call)]
    if caller is USER or rule == "anyone":
        return call
    if caller.role == "nobody" or not tokens.holds(caller):
        raise _no_token(tokens)
    if caller.role == "owner":
        return call
    if rule == "owner" or not isinstance(call, Scoped):
        raise Forbidden(f"{method_name(type(call))} is for the machine's user; this token's role is {caller.role}.")
    placed: C = _placed(call, caller, outward=rule == "outward")
    return placed


def _placed(call: Any, caller: Caller, outward: bool) -> Any:
    namespace = call.namespace or caller.namespace
    own = caller.owns(namespace)
    if not own and not (outward and namespace in enclosing(caller.namespace)):
        raise Forbidden(f"This token speaks for {caller.namespace}, not for {namespace[:80]}.")
    if call.reach == "all" or (call.reach == "subtree" and not own):
        raise Forbidden(f"This token reaches {caller.namespace} and what encloses it, not {call.reach!r}.")
    return call if call.namespace else msgspec.structs.replace(call, namespace=namespace)


def _no_token(tokens: Tokens) -> Unauthenticated:
    if tokens.required:
        advice = "Make one with `memctl token add`, present it with Client(token=…) or MEMORYD_TOKEN."
        return tokens.refusal(f"This daemon wants a token. {advice}")
    return tokens.refusal("The token of this connection is not in force; present another one.")
