"""The commands of workspaces in memctl."""

from memoryd.client.memctl.commands import Row

GROUPS = {
    "Markdown workspaces": {
        "workspace list": Row("workspace", "folders of Markdown files that are indexed and watched", "workspaces"),
        "workspace add": Row("workspace", "index and watch a folder of Markdown files", "workspaces"),
        "workspace remove": Row("workspace", "forget a workspace; its files stay", "workspaces"),
        "workspace status": Row("workspace", "what is indexed, what is not and why, how it is watched", "workspaces"),
        "workspace files": Row("workspace", "the files of a workspace that the index knows", "workspaces"),
        "workspace index": Row("workspace", "bring the index up to date with the files now", "workspaces"),
        "flush": Row("flush", "write what is worth keeping of a conversation into a file of a workspace", "workspaces"),
        "remember": Row("notes", "write a note into a file of a workspace, by default today's", "workspaces"),
        "forget": Row("notes", "take memories out of their files; delete those of no file", "workspaces"),
        "diff": Row("notes", "what the files hold that the index does not, and the reverse", "workspaces"),
    },
}
DEFAULT_VERBS: dict[str, str] = {"workspace": "list"}
