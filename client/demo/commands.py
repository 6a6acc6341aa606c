"""The commands of demo in memctl."""

from memoryd.client.memctl.commands import CommandRow

GROUPS = {
    "Trying out": {
        "demo": CommandRow("command", "three agents share a memory, in a temporary folder", "demo"),
    },
}
DEFAULT_VERBS: dict[str, str] = {}
