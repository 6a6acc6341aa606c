"""The commands of bench in memctl."""

from memoryd.client.memctl.commands import CommandRow

GROUPS = {
    "Trying out and measuring": {
        "model try": CommandRow("trying", "measure a model on your own memories, beside the one in use", "bench"),
        "bench eval": CommandRow("command", "measure retrieval quality on a data set of questions", "bench"),
        "bench pairs": CommandRow("command", "measure which of labelled pairs are linked as contradictions", "bench"),
        "bench unasked": CommandRow(
            "command", "measure what comes up though nobody asked, at sessions' starts and prompts", "bench"
        ),
    },
}
DEFAULT_VERBS: dict[str, str] = {}
