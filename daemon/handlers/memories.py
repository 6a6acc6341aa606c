"""Handlers of the calls that write, read and undo memories."""

from concurrent.futures import Future

from memoryd.client.errors import Invalid
from memoryd.client.protocol import (
    Add,
    Added,
    AddedMany,
    AddMany,
    Changed,
    Changes,
    Delete,
    Deleted,
    Feedback,
    Get,
    History,
    List,
    Memory,
    OperationLog,
    Operations,
    Page,
    Progress,
    Tag,
    Undo,
    Undone,
    Update,
)
from memoryd.daemon.core import adding, changing, feedback, reading
from memoryd.daemon.core.checks import check_memory, check_metadata
from memoryd.daemon.core.duplicates import Embedded
from memoryd.daemon.dispatch import Context, handles
from memoryd.daemon.store import namespaces

_PER_REPORT = 32  # memories embedded between two progress events


@handles(Add)
def add(context: Context, call: Add) -> "Future[Added]":
    """Remember one thing."""
    return adding.add(context.core, call, context.caller)


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


@handles(Get)
def get(context: Context, call: Get) -> Memory:
    """Read one memory."""
    return reading.get(context.core, call)


@handles(List)
def list_(context: Context, call: List) -> Page:
    """List memories."""
    check_metadata(call.metadata)
    return reading.list_(context.core, call)


@handles(Update)
def update(context: Context, call: Update) -> "Future[Changed]":
    """Change a memory."""
    return changing.update(context.core, call, context.caller)


@handles(Tag)
def tag(context: Context, call: Tag) -> "Future[Changed]":
    """Tag a memory."""
    return changing.tag(context.core, call, context.caller)


@handles(Feedback)
def rate(context: Context, call: Feedback) -> "Future[Changed]":
    """Note whether a memory was useful."""
    return feedback.give(context.core, call, context.caller)


@handles(Delete)
def delete(context: Context, call: Delete) -> "Future[Deleted]":
    """Delete memories."""
    return changing.delete(context.core, call, context.caller)


@handles(History)
def history(context: Context, call: History) -> Changes:
    """Show what happened to a memory."""
    return reading.changes(context.core, call)


@handles(Operations)
def operations(context: Context, call: Operations) -> OperationLog:
    """Show the operation log."""
    return reading.operations(context.core, call)


@handles(Undo)
def undo(context: Context, call: Undo) -> "Future[Undone]":
    """Take back an operation."""
    return changing.undo(context.core, call, context.caller)
