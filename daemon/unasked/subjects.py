"""Count texts by subject: a subject is a word that several texts share."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from memoryd.client.patterns import compile_late
from memoryd.daemon.agreement.parsing import stem
from memoryd.daemon.language.tongues import is_telling
from memoryd.daemon.store.stopwords import STOP_WORDS

_MAX_SUBJECTS = 6
_MIN_LETTERS = 4
_COMMON = 0.34  # a word in a larger share of the texts is no subject, if there are at least _ENOUGH texts
_ENOUGH = 9
_WORD = compile_late(r"(?<![0-9] )\b[^\W\d_]+")  # not a unit


def count_subjects(texts: Sequence[str]) -> list[tuple[str, int]]:
    """Return subjects with the number of their texts, the largest first; the last entry counts texts without one."""
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    left: list[dict[str, None]] = []
    for text in texts:
        stems: dict[str, None] = {}
        for word in map(str.lower, _WORD.findall(text)):
            if len(word) >= _MIN_LETTERS and is_telling(word) and word not in STOP_WORDS:
                forms[key := stem(word)][word] += 1
                stems[key] = None
        left.append(stems)
    all_counts = Counter(key for stems in left for key in stems)
    most = len(texts) if len(texts) < _ENOUGH else _COMMON * len(texts)
    counts = Counter({key: count for key, count in all_counts.items() if count <= most})
    named: list[tuple[str, int]] = []
    while len(named) < _MAX_SUBJECTS:
        worth = {key: count * math.log(1 + len(texts) / all_counts[key]) for key, count in counts.items() if count > 1}
        if not worth:
            break
        best = max(worth, key=worth.__getitem__)  # if several are equal, the first in the texts
        named.append((forms[best].most_common(1)[0][0].capitalize(), counts[best]))
        for stems in left:
            if best in stems:
                counts.subtract(stems.keys())
        left = [stems for stems in left if best not in stems]
    rest = [("others" if named else "memories", len(left))] if left else []
    return sorted(named, key=lambda one: -one[1]) + rest
