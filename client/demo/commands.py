"""The commands of demo in memctl."""

from memoryd.client.memctl.commands import Row

GROUPS = {
    "Trying out and measuring": {
        "demo": Row("command", "three agents share a memory, in a temporary folder", "demo"),
    },
}
DEFAULT_VERBS: dict[str, str] = {}
