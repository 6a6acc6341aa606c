"""Calls of the page: JSON in, JSON out. A method is passed on only when it is in `ALLOWED`.

Each method of the contract is in `ALLOWED` or in `REFUSED`, so a new one is placed on purpose.
"""

from collections.abc import Coroutine
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import msgspec

from memoryd.client.errors import Forbidden, Invalid, MemorydError, UnknownMethod
from memoryd.client.protocol import METHODS, Call, Erase, RunJob, method_name
from memoryd.client.transport.aio import AsyncClient

ALLOWED = frozenset(
    """
    count count_tokens delete dismiss_link erase explain feedback get get_around get_context get_log get_observing
    get_trace get_workspace graph_edges graph_node graph_nodes graph_topics history job_history jobs links list
    list_files list_tokens namespaces operation operations pause_job pause_observing resolve_conflict resume_job
    resume_observing run_job search share shared_conflicts sharing skipped stats status tag tiers traces turns undo
    update why_not workspaces
    """.split()
)

_STORED = "Memories come from agents and from memctl."
_DAEMON = "The daemon is run with memctl."
_SETTING = "Settings, tokens and workspaces are changed with memctl."
REFUSED: dict[str, str] = {
    **dict.fromkeys("add add_many put observe complete_task end_session reset_session remember seed".split(), _STORED),
    **dict.fromkeys(
        "import_memories export_memories graph_export summarize".split(), "Data come in and out by memctl."
    ),
    **dict.fromkeys("shutdown restart use_model hello authenticate backup verify confirm_clock".split(), _DAEMON),
    **dict.fromkeys(
        "add_token revoke_token add_workspace remove_workspace index_workspace".split(),
        _SETTING,
    ),
    **dict.fromkeys("share_root unshare_root grant_root migrate_server purge_shared".split(), _SETTING),
    **dict.fromkeys("forget flush diff_workspaces dream".split(), "Files are changed with memctl or an editor."),
    **dict.fromkeys("consolidate graph_dedupe graph_abstract graph_regroup".split(), "Run the job instead."),
    "delete_where": "The page deletes what is selected in it.",
    "subscribe": "Events have an address of their own.",
}


class _Tagged(msgspec.Struct):
    method: str


_tag = msgspec.json.Decoder(_Tagged)
_call = msgspec.json.Decoder(reduce(or_, (method for method in METHODS if method_name(method) in ALLOWED)))
_encoder = msgspec.json.Encoder()


def read_call(body: bytes) -> Call[Any]:
    """Return the call in a request; raise `Forbidden` for one that is not the page's, `Invalid` for a wrong one."""
    try:
        name = _tag.decode(body).method
        if name in REFUSED:
            raise Forbidden(f"The page may not call {name}. {REFUSED[name]}")
        if name not in ALLOWED:
            raise UnknownMethod(f"There is no method {name}.")
        call: Call[Any] = _call.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"The call cannot be read: {error}.") from None
    if getattr(call, "allow_secrets", False):
        raise Forbidden("The page stores no credentials.")
    if isinstance(call, Erase) and (len(call.ids) != 1 or call.session is not None):
        raise Forbidden("The page erases one memory at a time; `memctl erase` takes filters.")
    return call


class Clients(NamedTuple):
    """The ways to the daemon: one for what people wait for, one for what takes as long as it takes."""

    quick: AsyncClient
    patient: AsyncClient


async def answer_call(clients: Clients, body: bytes) -> bytes:
    """Return the answer to a request as JSON text."""
    return await answer_work(_send_call(clients, body))


async def _send_call(clients: Clients, body: bytes) -> bytes:
    call = read_call(body)
    client = clients.patient if isinstance(call, RunJob | Erase) else clients.quick
    return _encoder.encode(await client.call(call))


async def answer_work(work: Coroutine[Any, Any, bytes]) -> bytes:
    """Return `{"result": …}`, or `{"error": …}` with code, sentence and details: an error is an answer, too."""
    try:
        return b'{"result":' + await work + b"}"
    except MemorydError as error:
        return _encoder.encode({"error": {"code": error.code, "message": error.message, "data": error.data}})
