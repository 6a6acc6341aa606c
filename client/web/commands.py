"""The commands of web in memctl."""

from memoryd.client.memctl.commands import CommandRow

GROUPS = {
    "Daemon": {
        "web": CommandRow(
            "command", "a page in the browser: see, search, correct and erase what agents remember", "web"
        ),
    },
}
DEFAULT_VERBS: dict[str, str] = {}
