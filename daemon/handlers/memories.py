"""Handlers of the calls that write, read and undo memories."""

from concurrent.futures import Future

from memoryd.client.errors import Invalid
from memoryd.client.protocol import (
    AddedMany,
    AddMany,
    Progress,
)
from memoryd.daemon.core import adding
from memoryd.daemon.core.checks import check_memory
from memoryd.daemon.core.duplicates import Embedded
from memoryd.daemon.dispatch import Context
from memoryd.daemon.registry import handles
from memoryd.daemon.store import namespaces

_PER_REPORT = 32  # memories embedded between two progress events


@handles(AddMany)
def add_many(context: Context, call: AddMany) -> "Future[AddedMany]":
    """Check all, embed all in small portions with progress, then write all."""
    namespaces.check(call.namespace)
    if not call.memories:
        raise Invalid("No memories are given to add.")
    for number, memory in enumerate(call.memories):
        try:
            check_memory(memory)
        except Invalid as error:
            raise Invalid(f"Memory {number}: {error}", {"index": number}) from None
    embedded: list[Embedded] = []
    total = len(call.memories)
    for start in range(0, total, _PER_REPORT):
        texts = [memory.content for memory in call.memories[start : start + _PER_REPORT]]
        embedded += context.core.embedding.text_vectors(texts)
        context.report(Progress(stage="embed", done=len(embedded), total=total))
    return adding.add_many(context.core, call, embedded, context.caller)
