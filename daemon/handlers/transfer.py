"""Handlers of export and import."""

from concurrent.futures import Future

from memoryd.client.protocol import Exported, ExportMemories, Imported, ImportMemories
from memoryd.daemon.core import transfer
from memoryd.daemon.core.checks import check_metadata
from memoryd.daemon.dispatch import Context, handles


@handles(ExportMemories)
def export(context: Context, call: ExportMemories) -> Exported:
    """Read one portion of an export."""
    check_metadata(call.metadata)
    return transfer.export(context.core, call, context.caller)


@handles(ImportMemories)
def import_(context: Context, call: ImportMemories) -> "Future[Imported]":
    """Put memories back."""
    return transfer.import_(context.core, call)
