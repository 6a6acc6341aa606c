"""What a prompt is as a hook gets it, or as a file of a session has it: what of it the person said, and of which kind.

A hook imports nothing else of this folder, but a module of its host beside it.
"""

import re

from msgspec import Struct

from memoryd.client.patterns import compile_late

TYPED, QUEUED, REPLY, REASON, ARGUMENT = "typed", "queued", "reply", "reason", "argument"
# What a program says to the agent, by kind; counted, never kept.
NOTICE, PEER, CONTEXT = "notices of background work", "messages of other agents", "context that an editor added"
COMMAND, FEEDBACK, COMPACTION = "commands to the host and their output", "what hooks said", "summaries of compactions"
HANDED_PLAN, SYNTHETIC = "plans that were handed over", "lines that the host wrote for the agent"


class Judged(Struct, frozen=True):
    """What one text is that a host presents as a prompt: its kind, and what of it the person said.

    `kind` is one of the person's, or one of a program's; then `text` is empty.
    """

    kind: str
    text: str = ""

    @property
    def is_person(self) -> bool:
        """Return whether the person said something with it."""
        return bool(self.text)


_COMMAND = compile_late(r"/[\w:-]+(\s|$)")  # `/compact`, not a path
# What hosts put before a prompt of what hooks said: taken for the user's words it would be learnt again.
# What is opened and not closed is theirs: taken to its end, so that the text is read once.
_INJECTED = [compile_late(rf"<{name}>(?:.*?</{name}>\s*|(.*))", re.DOTALL) for name in ("hook_context", "memories")]


def clean_prompt(prompt: str) -> str:
    """Return what of a prompt the user said, empty for a command to the host."""
    for injected in _INJECTED:
        prompt = injected.sub(lambda found: "" if found[1] is None else found[0], prompt)
    prompt = prompt.strip()
    return "" if _COMMAND.match(prompt) else prompt
