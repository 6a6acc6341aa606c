"""Which notes of a day state something that holds beyond it, by rules for English. Pure functions."""

import re

from memoryd.client.patterns import compile_late
from memoryd.daemon.language import rating, words

DURABLE = 0.6  # importance from which a plain statement of a daily file may be kept
_RULED = compile_late(
    r"\b(?:is|are) (?:not )?(?:allowed|permitted|forbidden|prohibited|banned|disabled|optional|closed|inactive)\b", re.I
)
_OF_THE_DAY = compile_late(
    r"^(?:I |We )?(?:had|went|met|talked|spent|worked|looked|tried|read|wrote|fixed|reviewed|started|finished|cleaned"
    r"|paired|chatted|got|made|took|did|saw|helped|waited|ran|walked|called|answered|debugged|merged|sat|joined|watched"
    r"|ordered|ate|left|came|tested|refactored|tidied|investigated|continued|skimmed|caught)\b"
    r"|\b(?:today|yesterday|tonight|this (?:morning|afternoon|evening)|lunch|coffee|weather|sunny|rain(?:y|ed)?)\b",
    re.I,
)
_LASTING = frozenset({"decision", "rule", "preference", "lesson"})
_HOLDS = compile_late(
    r"\b(?:is|are|uses?|runs?|lives?|listens?|owns?|needs?|prefers?|expects?|has|have|stays?|keeps?|happens?|starts?|ends?"
    r"|costs?|goes|means?|holds?|takes?|works?|belongs?|maintains?|leads?|moved|switched|changed|migrated|took over|now"
    r"|due|deadline)\b",
    re.I,
)
_SOLID = frozenset({"number", "code", "name", "date", "plan"})
_ROLE = compile_late(
    r"^[A-Z][\w-]+(?: and [A-Z][\w-]+)? (?:maintains?|leads?|owns?|manages?|keeps?|handles?|heads?|looks? after"
    r"|took over|takes? over|(?:is|are) (?:responsible|in charge|the))\b"
)
_DANGLING = compile_late(r"^(?:it|this|that|they|he|she|these|those|there|which|same)\b", re.I)


def is_durable(text: str) -> bool:
    """Return whether a note of a day states something that holds beyond it."""
    if words.GUESS.search(text) or _DANGLING.match(text):
        return False
    if _ROLE.match(text) or _RULED.search(text):
        return True
    if rating.importance(text) < DURABLE:
        return False
    features = frozenset(rating.list_features(text))
    if _OF_THE_DAY.search(text):
        return "decision" in features or "lesson" in features or bool(features & {"rule"} and features & _SOLID)
    holds = _HOLDS.search(text) or words.CHANGE.search(text.casefold())
    return bool(features & _LASTING) or bool(holds and features & _SOLID)
