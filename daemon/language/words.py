"""Words by what they do in a statement, in English, German, Chinese and Japanese: the tables of `statements`.

`STOP` says nothing of content. `NEGATIVE` denies. `LIGHT` is content that a denial may add or drop. `STATES` are passed
through one after the other. `PAST` reports an event. `PLACES` hold side by side. `ROLES` have one holder. `OPEN` takes
many values beside each other. `ADDITIVE` says that something is beside something else.
"""

import re

from memoryd.client.patterns import compile_late


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP = _set(
    """
a an the this that these those of to in on at by for with from into onto as and or but so than then there here it its
is are was were be been being am do does did has have had having will would shall should can could may might must get
gets got i me my mine we us our ours you your yours he him his he she her hers they them their who which what when where
please just really very actually always ever up out over any ve because since yes well oh wait allowed permitted
possible required able keep kept put set raised lowered increased
der die das den dem des ein eine einen einem einer eines und oder ist sind war waren wird werden wurde hat haben hatte
habe ich mir mich mein meine meinen wir uns unser sie ihr es er im in am an auf bei mit von vom zu zum zur aus als wie
so für um ab noch immer schon darf kann muss nach hinaus man
的 了 在 是 我 你 他 她 们 把 被 就 都 也 还 要 会 里 那 这 可 以 已 经 着 过 到 给 其 实 有 为 上 許 许 允
"""
)
NEGATIVE = _set(
    """
not no never none nobody nothing neither without cannot refuse refuses refused reject rejects rejected removed dropped
stop stopped forbidden prohibited off disabled
nicht kein keine keinen keinem keiner nie niemals niemand ohne nichts
不 没 無 无 未 禁 别
"""
)
ADDITIVE = _set(
    """
also too another additionally addition besides well further second extra both other
auch weitere weiterer zusätzlich nebenbei ausserdem außerdem 也 还 另 又
"""
)
LIGHT = _set(
    "need us all every each som most both few many much half everybody everyon somebody 所 些 每 alle jede jeder einige"
)
STATES = _set("start begun don finish open clos wait fix repair runn ready complet")
PAST = _set(
    """
was were had went took gave got saw ate came said did made bought visited ran found lasted happened released failed
finished started dauerte war waren hatte ging kam gab 昨 了
"""
)
TIMES = _set(
    """
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
october november december spring summer autumn winter morning evening noon night today yesterday tomorrow week month
year last next montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli oktober
dezember heute gestern morgen
"""
)
PLACES = _set(
    """
staging production prod development dev test testing qa ci local demo preview linux macos windows mac android ios home
office server client laptop desktop primary replica frontend backend
"""
)
ROLES = _set(
    """
own owns owned owner lead leads led leader manager manage manages responsible charge approve approved approves maintain
maintains maintainer go goes ask contact responsibility verantwortlich zuständig leitet macht betreut
"""
)
OPEN = _set(
    """
like likes love loves prefer prefers want wants speak speaks learn learns play plays read reads eat eats drink drinks
visit visits see saw met add adds added fix fixes fixed include includes contain contains offer offers support supports
know knows went bought had discuss discussed mention mentioned write wrote watch watched
"""
)
# One of these shows that a text is English; none is a common word of another language.
ENGLISH = _set(
    """
the is are and with for from of to every each after before during until without when unless never always only we you
then there must should not does our your his her their uses use please i'm prefers likes owns runs has have will this
"""
)
CONTRACTED = _set("cannot isnt dont doesnt cant wont arent hasnt")
IN_FULL = {
    "can't": "can not",
    "cannot": "can not",
    "won't": "will not",
    "i'm": "I am",
    "it's": "it is",
    "they're": "they are",
    "we're": "we are",
    "you're": "you are",
    "we'll": "we will",
    "i'll": "I will",
    "i've": "I have",
    "we've": "we have",
}
IN_FULL |= {
    f"{verb}n't": f"{verb} not" for verb in "is are was were do does did has have had should would could".split()
}

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve",
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
)
NUMBERS = {word: str(number) for ones in _ONES for number, word in enumerate(ones.split())}

CHANGE = compile_late(
    r"\bnow\b|\bno longer\b|\bany ?more\b|\bany longer\b|\binstead\b|\bmoved\b|\bfrom now on\b|\bthese days\b"
    r"|\bswitched\b|\bchanged\b|\breplaced\b|\bput off\b|\bpostponed\b|\bsince the\b|\bno wait\b"
    r"|\bjetzt\b|\bstatt\b|\bab sofort\b|\bverlegt\b|\bverschoben\b|\bnicht mehr\b|\bmittlerweile\b|\binzwischen\b"
    r"|改|搬到|换成|换|交给|推迟|不再|移行|変更|やめ|になりました|に変わ|なった"
)
NOISE = compile_late(
    r"\bnow\b|\bno longer\b|\bany ?more\b|\bany longer\b|\bfrom now on\b|\bthese days\b|\bas always\b|\bno wait\b"
    r"|\binstead of \S+|\bput off\b|\bnicht mehr\b|\bab jetzt\b|\bjetzt\b|\bstatt (?:in )?\S+|\bcurrently\b"
)
NO_LONGER = compile_late(r"\bno longer\b|\bnicht mehr\b")
REASON = compile_late(r"(?:\bbecause\b|\bsince\b|, so\b|\bdue to\b|, as\b|\bweil\b|\bwegen\b|\bdamit\b).*", re.S)
NO_STATEMENT = compile_late(r"[!！]|[?？]$")
HIRAGANA_NOT = compile_late(r"ない|ません|なかった|なく|ず$")
