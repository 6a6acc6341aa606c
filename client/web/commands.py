"""The commands of web in memctl."""

from memoryd.client.memctl.commands import CommandRow

GROUPS = {
    "Daemon": {
        "web": CommandRow(
            "command", "a page in the browser: what agents remember, why it was found, taking it back", "web"
        ),
    },
}
DEFAULT_VERBS: dict[str, str] = {}
