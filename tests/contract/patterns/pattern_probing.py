"""How long the patterns of the project take on hostile texts: a process of its own, so that none can hang a test.

Prints a line of JSON with the name of each pattern as its turn comes, and one more with what is wrong with it.
"""

import json
import re
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

from pattern_attacks import Attack, attacks

LENGTH, PUMPS = 512, 160  # of the text that finds suspects, at least
FACTOR = 16  # how much longer the text is that convicts them
WORST_RATIO, WORST_S = 48.0, 0.005  # of its time to the other's, 16 if linear, 256 if quadratic; and that it takes
SURELY_LINEAR = 5.0  # of the time of a text four times as long to the other's: what is convicted has 5.6 at least
LIMIT_S = 0.25  # of processor time for one text
_SUSPECT_S, _SURELY_SUSPECT_S = 0.1e-6, 2e-6  # per character
ALL_S = 400  # of processor time for all patterns; the process ends then
BOUNDED_S = 0.02  # for a text of the greatest length that a bounded pattern is given


class Bound(NamedTuple):
    """What was reviewed: how the patterns of a name are used, and the longest text they meet (0: any length)."""

    methods: tuple[str, ...]
    chars: int = 0


class _TooLate(Exception):
    pass


def _stop(*_: Any) -> None:
    raise _TooLate


def taken_s(pattern: re.Pattern[str], method: str, text: str) -> float:
    """Return the processor time of one method on one text, at most about `LIMIT_S`; the engine looks for signals."""
    run: Callable[[str], Any] = getattr(pattern, method)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    begin = time.thread_time()  # that of the process is coarse while its timer runs
    try:
        if method == "finditer":
            for _ in run(text):
                pass
        else:
            run(text)
    except _TooLate:
        return LIMIT_S
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.thread_time() - begin


def defect(pattern: re.Pattern[str], methods: Sequence[str], chars: int = 0, rounds: int = 1) -> str | None:
    """Return what is wrong with a pattern, None where nothing is: the method, the text, the time."""
    signal.signal(signal.SIGVTALRM, _stop)
    made = list(attacks(pattern, rounds))
    for method in methods:
        find = _too_slow(pattern, method, made, chars) if chars else _growing(pattern, method, made)
        if found := next(find, None):
            return found
    return None


def _growing(pattern: re.Pattern[str], method: str, made: Sequence[Attack]) -> Iterator[str]:
    """Yield the texts on which the time grows much faster than their length."""
    times: list[float] = []
    for attack in made:
        length = max(LENGTH, PUMPS * len(attack.pump))
        took = taken_s(pattern, method, attack.text(length))
        times.append(took / length)
        usual = 4 * median(times[-99:]) if len(times) > 20 else 0.0
        if took / length > max(_SUSPECT_S, min(usual, _SURELY_SUSPECT_S)):
            if took >= LIMIT_S:
                yield f"{method} of {attack}: more than {1000 * took:.0f} ms for {length} characters"
            middle = taken_s(pattern, method, attack.text(4 * length))
            if middle < min(SURELY_LINEAR * took, LIMIT_S / 4):
                continue  # slow, but no slower for what is longer
            # Not the least: a clock may miss some of it.
            short = median(taken_s(pattern, method, attack.text(length)) for _ in range(3))
            long = taken_s(pattern, method, attack.text(FACTOR * length))
            if long > max(WORST_S, WORST_RATIO * short):
                long = _least_s(pattern, method, attack.text(FACTOR * length))  # once may have been chance
            if long > max(WORST_S, WORST_RATIO * short) or long >= LIMIT_S:
                yield f"{method} of {attack}: {1000 * short:.1f} ms, {FACTOR} times longer {1000 * long:.1f} ms"


def _least_s(pattern: re.Pattern[str], method: str, text: str) -> float:
    return min(taken_s(pattern, method, text) for _ in range(3))


def _too_slow(pattern: re.Pattern[str], method: str, made: Sequence[Attack], chars: int) -> Iterator[str]:
    """Yield the texts that take too long though they are as short as the pattern ever meets."""
    for attack in made:
        text = attack.text(chars)[: chars - len(attack.end)] + attack.end
        if taken_s(pattern, method, text) > BOUNDED_S:
            took = _least_s(pattern, method, text)
            if took > BOUNDED_S:
                yield f"{method} of {attack}: {1000 * took:.1f} ms for {len(text)} characters"


def main() -> None:
    """Probe every pattern; the reviewed bounds come as JSON in the first argument, in the second how long to look."""
    resource.setrlimit(resource.RLIMIT_CPU, (ALL_S, ALL_S))
    compiled = _note_compiled()
    import pattern_finding

    rounds = int(sys.argv[2])
    reviewed = {name: Bound(*bound) for name, bound in json.loads(sys.argv[1]).items()}
    every = pattern_finding.patterns()
    missed = compiled - {(one.pattern.pattern, one.pattern.flags) for one in every}
    _tell(patterns=len(every), missed=sorted(missed), built=sorted(pattern_finding.built_in_functions()))
    unused = set(reviewed)
    for one in every:
        row = next((row for row in reviewed if any(name.startswith(row) for name in one.names)), "")
        unused.discard(row)
        bound = reviewed.get(row, Bound(one.methods))
        _tell(name=one.names[0])
        found = defect(one.pattern, bound.methods, bound.chars, rounds)
        if found:
            _tell(name=one.names[0], defect=found)
    _tell(unused=sorted(unused))


def _note_compiled() -> set[tuple[str, int]]:
    """Note from now on which patterns modules of memoryd compile as they are imported."""
    compiled: set[tuple[str, int]] = set()
    compile = re._compile  # type: ignore[attr-defined]
    from memoryd.client import patterns

    def noting(pattern: Any, flags: int) -> Any:
        made = compile(pattern, flags)
        frame: Any = sys._getframe(1)
        while frame and frame.f_globals["__name__"] == "re":
            frame = frame.f_back
        if frame.f_globals["__name__"].startswith("memoryd.") and isinstance(made.pattern, str):
            compiled.add((made.pattern, made.flags))
        return made

    def noting_late(pattern: patterns.LatePattern, text: str, flags: int) -> None:
        made = compile(text, int(flags))
        compiled.add((made.pattern, made.flags))
        begin(pattern, text, flags)

    re._compile = noting  # type: ignore[attr-defined]
    begin = patterns.LatePattern.__init__
    patterns.LatePattern.__init__ = noting_late  # type: ignore[method-assign]
    return compiled


def _tell(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    main()
