"""The commands of bench in memctl."""

from memoryd.client.memctl.commands import Row

GROUPS = {
    "Trying out and measuring": {
        "bench eval": Row("command", "measure retrieval quality on a data set of questions", "bench"),
        "bench pairs": Row("command", "measure which of labelled pairs are linked as contradictions", "bench"),
        "bench unasked": Row(
            "command", "measure what comes up though nobody asked, at sessions' starts and prompts", "bench"
        ),
    },
}
DEFAULT_VERBS: dict[str, str] = {}
