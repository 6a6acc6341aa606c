"""The command of the backfill in memctl."""

from memoryd.client.memctl.commands import CommandRow

GROUPS = {
    "Coding agents": {
        "backfill": CommandRow("backfill", "take in past sessions of Claude Code, Codex and others", "backfill"),
    },
}
DEFAULT_VERBS: dict[str, str] = {}
