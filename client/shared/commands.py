"""The commands of shared in memctl."""

from memoryd.client.memctl.commands import CommandRow

GROUPS = {
    "Several machines": {
        "shared status": CommandRow("shared", "what is shared with other machines, and what waits", "shared"),
        "shared add": CommandRow("shared", "share a root, or more of its namespaces, through PostgreSQL", "shared"),
        "shared remove": CommandRow("shared", "stop sharing a root; keep or delete what is here of it", "shared"),
        "shared conflicts": CommandRow("shared", "memories that were changed on two machines", "shared"),
        "shared resolve": CommandRow("shared", "settle a conflict: keep one version, or a new text", "shared"),
        "shared purge": CommandRow("shared", "erase shared memories here and on every machine", "shared"),
        "shared grant": CommandRow("shared", "let a role of the server read or write a root, or keep it out", "shared"),
        "shared migrate": CommandRow("shared", "make memoryd's tables on a server, or bring them up to date", "shared"),
    },
}
DEFAULT_VERBS: dict[str, str] = {"shared": "status"}
