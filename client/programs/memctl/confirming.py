"""Asking before what cannot be taken back: the person types a word."""

import sys

from memoryd.client.errors import MemorydError
from memoryd.client.programs.memctl.arguments import Usage
from memoryd.client.programs.memctl.output import print_note


def confirm(word: str, warning: str, preview: str, otherwise: str) -> None:
    """Show `preview` and go on only when `word` is typed; else raise `MemorydError` with `otherwise`.

    Where there is no terminal to ask on, raise `Usage` with the warning.
    """
    if not (sys.stdin and sys.stdin.isatty()):
        raise Usage(f"{warning} Give --yes, as there is no terminal to ask on.")
    print_note(f"{preview}\nType {word} to go on:")
    if sys.stdin.readline().strip() != word:
        raise MemorydError(f"{otherwise} The word is `{word}`.")
