"""How long the patterns of the project take on hostile texts: a process of its own, so that none can hang a test.

A text is hostile if a match seems near all along and fails at its end: parts of what a pattern matches, repeated.
Prints a line of JSON with the name of each pattern as its turn comes, and one more with the text that takes too long.
"""

import json
import re
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import pattern_finding
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument, Unsatisfiable

CHARS = 10_000  # of a text; the square of them takes a tenth of a second at least
LIMIT_S = 0.06  # of processor time for one text; what is linear takes less, but on a slow machine
# What takes so long on an eighth of a text is measured on all of it: a square takes `LIMIT_S` from twice that on.
_SHORT, _SUSPECT_S = 8, LIMIT_S / 8**2 / 2
ALL_S = 400  # of processor time for all patterns; the process ends then
_PUMPS = [*".: 1aA-_/\n([\"`'=<", "a ", "a.", "1.", ". ", "\n ", "a:1 "]
_ENDS = ("\0", " x")
_SAMPLES, _SAMPLE_CHARS = 3, 12
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?<?[=!]|.", re.DOTALL)


class Bound(NamedTuple):
    """How the patterns of a name are used, and the longest text that they are given."""

    methods: tuple[str, ...]
    chars: int = CHARS


class _TooLate(Exception):
    pass


def _stop(*_: Any) -> None:
    raise _TooLate


def find_slow_text(pattern: re.Pattern[str], methods: Iterable[str], chars: int = CHARS) -> str | None:
    """Return what takes a method longer than `LIMIT_S`, three times running; None if nothing does."""
    signal.signal(signal.SIGVTALRM, _stop)
    pumps = {("", pump): None for pump in _PUMPS} | dict.fromkeys(_list_parts(pattern))
    for method in methods:
        for beginning, pump in pumps:
            for end in _ENDS:
                run = getattr(pattern, method)
                if _measure_s(run, _repeat(beginning, pump, end, chars // _SHORT)) < _SUSPECT_S:
                    continue
                text = _repeat(beginning, pump, end, chars)
                half = _repeat(beginning, pump, end, chars // 2)
                if all(_is_slow(_measure_s(run, text), _measure_s(run, half)) for _ in range(3)):
                    return f"{method} of {beginning!r}, {pump!r} again and again, {end!r}"
    return None


def _is_slow(whole_s: float, half_s: float) -> bool:
    """Return whether the time grows faster than the text: what is linear takes long only on a slow machine."""
    return whole_s > LIMIT_S and (whole_s > 3 * LIMIT_S or whole_s > 3 * half_s)


def _repeat(beginning: str, pump: str, end: str, chars: int) -> str:
    return (beginning + pump * (chars // len(pump)))[: chars - len(end)] + end


def _measure_s(method: Callable[[str], Any], text: str) -> float:
    """Return the processor time of a method; where it takes long, it is ended, as the engine looks for signals."""
    signal.setitimer(signal.ITIMER_VIRTUAL, 4 * LIMIT_S)
    began = time.thread_time()
    with suppress(_TooLate):
        found = method(text)
        if isinstance(found, Iterator):
            for _ in found:
                pass
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)  # within: the signal may come up to here
    return time.thread_time() - began


def _list_parts(pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield beginnings of texts that a pattern matches with the character that follows, and as what is repeated."""
    for sample in _match_samples(pattern):
        for at in range(len(sample)):
            yield from ((sample[:at], sample[at]), ("", sample[: at + 1]), ("", f"-{sample[: at + 1]}"))


def _match_samples(pattern: re.Pattern[str]) -> list[str]:
    """Return some texts that a pattern would match if it did not look around itself, the same ones each time."""
    matching = _drop_looks(pattern)
    for characters in (st.characters(codec="ascii"), st.characters()):
        with suppress(InvalidArgument, Unsatisfiable):
            return _draw(st.from_regex(matching, fullmatch=True, alphabet=characters))
    return []


def _drop_looks(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """Return a pattern without its lookaheads and lookbehinds: texts that they allow are hardly ever drawn."""
    left, depth, looks = "", 0, 0
    for token in _TOKEN.findall(pattern.pattern):
        depth += token.startswith("(")
        looks = looks or depth * (len(token) > 1 and token[0] == "(")
        left += "" if looks else token
        if token == ")":
            looks *= looks != depth
            depth -= 1
    try:
        return re.compile(left, pattern.flags)
    except re.error:  # what follows names a group of a lookahead
        return pattern


def _draw(strategy: st.SearchStrategy[str]) -> list[str]:
    found: list[str] = []

    @settings(
        max_examples=_SAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def note(text: str) -> None:
        found.append(text[:_SAMPLE_CHARS])

    note()
    return found


def main() -> None:
    """Try every pattern; the reviewed bounds come as JSON in the first argument."""
    resource.setrlimit(resource.RLIMIT_CPU, (ALL_S, ALL_S))
    reviewed = {name: Bound(*bound) for name, bound in json.loads(sys.argv[1]).items()}
    every = pattern_finding.find_patterns()
    _tell(patterns=len(every), built=sorted(pattern_finding.built_in_functions()))
    unused = set(reviewed)
    for one in every:
        row = next((row for row in reviewed if any(name.startswith(row) for name in one.names)), "")
        unused.discard(row)
        bound = reviewed.get(row, Bound(one.methods))
        _tell(name=one.names[0])
        if slow := find_slow_text(one.pattern, bound.methods, bound.chars):
            _tell(name=one.names[0], slow=slow)
    _tell(unused=sorted(unused))


def _tell(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    main()
