"""The commands of workspaces in memctl."""

from memoryd.client.memctl.commands import CommandRow

GROUPS = {
    "Markdown workspaces": {
        "workspace list": CommandRow(
            "workspace", "folders of Markdown files that are indexed and watched", "workspaces"
        ),
        "workspace add": CommandRow("workspace", "index and watch a folder of Markdown files", "workspaces"),
        "workspace remove": CommandRow("workspace", "forget a workspace; its files stay", "workspaces"),
        "workspace status": CommandRow(
            "workspace", "what is indexed, what is not and why, how it is watched", "workspaces"
        ),
        "workspace files": CommandRow("workspace", "the files of a workspace that the index knows", "workspaces"),
        "workspace index": CommandRow("workspace", "bring the index up to date with the files now", "workspaces"),
        "flush": CommandRow(
            "flush", "write what is worth keeping of a conversation into a file of a workspace", "workspaces"
        ),
        "remember": CommandRow("notes", "write a note into a file of a workspace, by default today's", "workspaces"),
        "forget": CommandRow(
            "notes", "take memories out of their files; delete those that come from no file", "workspaces"
        ),
        "diff": CommandRow("notes", "what the files hold that the index does not, and the reverse", "workspaces"),
    },
}
DEFAULT_VERBS: dict[str, str] = {"workspace": "list"}
