"""What workspaces bring to the view Health of the page."""

from memoryd.client.programs.memctl.table import count_text
from memoryd.client.programs.web.reports import parts
from memoryd.client.protocol.workspaces import Workspace, Workspaces
from memoryd.client.transport.aio import AsyncClient


async def read_panel(client: AsyncClient) -> parts.Part:
    """Return the panel of all workspaces."""
    spaces = await client.call(Workspaces())
    none = ["span", "No folder of notes is indexed: ", ["code", "memctl workspace add PATH"]]
    return parts.panel("Workspaces", parts.list_items(map(_show_space, spaces), none))


def _show_space(space: Workspace) -> parts.Part:
    sizes = f" {count_text(space.files, 'file')}, {count_text(space.chunks, 'part')}"
    name = ["b", parts.place(space.namespace)]
    return ["span", name, " ", parts.state(space.watching, "inotify"), sizes, ["br"], ["span.dim", space.root]]
