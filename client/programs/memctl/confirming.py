"""Questions to the person: a word to type for an action that cannot be undone, and offers to agree to."""

import sys

from memoryd.client.errors import MemorydError
from memoryd.client.programs.memctl.arguments import Usage
from memoryd.client.programs.memctl.output import print_note


def confirm(word: str, warning: str, preview: str, refusal: str) -> None:
    """Show `preview` and return if `word` is typed, otherwise raise `MemorydError` with `refusal`.

    Raise `Usage` with the warning if there is no terminal to ask on.
    """
    if not (sys.stdin and sys.stdin.isatty()):
        raise Usage(f"{warning} There is no terminal to ask on; give --yes.")
    print_note(f"{preview}\nType {word} to continue:")
    if sys.stdin.readline().strip() != word:
        raise MemorydError(f"{refusal} The word to type is `{word}`.")


def agrees(question: str) -> bool:
    """Ask a question; return whether the person agrees, False if there is no terminal to ask on."""
    if not (sys.stdin and sys.stdin.isatty()):
        return False
    print_note(f"{question} [y/N]")
    return sys.stdin.readline().strip().casefold() in ("y", "yes")
