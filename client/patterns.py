"""Regular expressions that are compiled at their first use, which keeps the start of a process short."""

import re
from typing import Any, cast


class LatePattern:
    """A regular expression that is compiled at its first use.

    It has the attributes and methods of the compiled pattern; functions of the module `re` do not accept it.
    """

    def __init__(self, pattern: str, flags: int) -> None:
        self._text = pattern, int(flags)

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(re.compile(*self._text), name)
        setattr(self, name, attribute)  # the next access does not call this method
        return attribute


def compile_late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled when it is first used."""
    return cast("re.Pattern[str]", LatePattern(pattern, flags))
