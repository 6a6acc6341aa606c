"""Code shared by the modules that classify prompts (of hooks, or of session files) and extract the person's words.

A hook imports only this module and the one of its host from this folder.
"""

import re

from msgspec import Struct

from memoryd.client.patterns import compile_late

TYPED, QUEUED, REPLY, REASON, ARGUMENT = "typed", "queued", "reply", "reason", "argument"
# Kinds of a program's messages to the agent, which are counted, never stored.
NOTICE, PEER, CONTEXT = "notices of background work", "messages of other agents", "context that an editor added"
COMMAND, FEEDBACK, COMPACTION = "commands to the host and their output", "what hooks said", "summaries of compactions"
HANDED_PLAN, SYNTHETIC = "plans that were handed over", "lines that the host wrote for the agent"


class Judged(Struct, frozen=True):
    """The class of a text that a host presents as a prompt: its kind, and the person's words in it.

    If `kind` is one of a program's messages, `text` is empty.
    """

    kind: str
    text: str = ""

    @property
    def is_person(self) -> bool:
        """Whether the text has words of the person."""
        return bool(self.text)


_COMMAND = compile_late(r"/[\w:-]+(\s|$)")  # `/compact`, not a path
# Output of hooks that hosts add to a prompt; it must not be stored again as the user's words. An unclosed element is
# the user's text: it is matched to the end of the text, so that the text is scanned only once.
_INJECTED = [compile_late(rf"<{name}>(?:.*?</{name}>\s*|(.*))", re.DOTALL) for name in ("hook_context", "memories")]


def clean_prompt(prompt: str) -> str:
    """Return the user's words in a prompt, empty for a command to the host."""
    for injected in _INJECTED:
        prompt = injected.sub(lambda found: "" if found[1] is None else found[0], prompt)
    prompt = prompt.strip()
    return "" if _COMMAND.match(prompt) else prompt
