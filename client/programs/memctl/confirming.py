"""Confirmation of an action that cannot be undone: the person types a word."""

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
