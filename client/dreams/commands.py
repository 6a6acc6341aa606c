"""The commands of dreams in memctl."""

from memoryd.client.memctl.commands import CommandRow

GROUPS = {
    "Markdown workspaces": {
        "dream": CommandRow("dream", "tidy MEMORY.md by the daily files (proposed first), or memories", "dreams"),
    },
}
DEFAULT_VERBS: dict[str, str] = {}
