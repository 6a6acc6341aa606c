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
a an the this that these those of to in on at by for with through via from into onto as yet per and or
but so than then there here it its
is are was were be been being am do does did has have had having will would shall should can could may might must get
gets got i me my mine we us our ours you your yours he him his he she her hers they them their who which what when where
please just really very actually always ever up out over any ve because since yes well oh wait allowed permitted
possible required able keep kept put set raised lowered increased
der die das den dem des ein eine einen einem einer eines und oder ist sind war waren wird werden wurde hat haben hatte
habe ich mir mich mein meine meinen wir uns unser sie ihr es er im in am an auf bei mit von vom zu zum zur aus als wie
so für um ab noch immer schon darf kann muss nach hinaus man erst
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
_OPPOSITES = """
open clos wet dry empty full paid unpaid public privat
feucht trocken offen geschlossen leer voll geöffnet geschlossen
"""
OPPOSITES = dict(zip(_OPPOSITES.split()[::2], _OPPOSITES.split()[1::2], strict=True))
OPPOSITES |= {second: first for first, second in OPPOSITES.items()}
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


def _compile_phrases(spaced: str, other: str = "") -> re.Pattern[str]:
    """Return what finds one of the phrases between semicolons as whole words, or one of another script."""
    found = "|".join(phrase.strip() for phrase in spaced.split(";"))
    return compile_late(rf"\b(?:{found})\b" + (f"|{other}" if other else ""))


# The newer statement says that something changed.
CHANGE = _compile_phrases(
    """now; no longer; any ?more; any longer; instead; moved; from now on; these days; switched; changed; replaced;
    put off;
    postponed; since the; no wait; pushed (?:back|to); brought forward; renamed; (?:updat|upgrad)ed to;
    tak(?:en|ing) over;
    took over; handed (?:over )?to; (?:raised|cut|lowered|increased|reduced) to; went (?:up|down); down to; after all;
    misread; from this \\w+ on; is wrong; had it wrong; passed (?:from|to); not \\S+ but; rather than;
    jetzt; statt; ab sofort; verlegt; verschoben; nicht mehr; mittlerweile; inzwischen; nur noch; neuerdings; umbenannt;
    übernommen; sondern""",
    r"^(?:since|as of|seit)\b|^not \w+,"
    "|改|搬到|换成|换|交给|推迟|不再|现在|如今|涨到|降到|变了|不是.*而是"
    "|移行|変更|やめ|になりました|に変わ|なった|乗り換え|に変え|に代わ|に延び|今は|今では|現在は|ではなく|値上げ|値下げ",
)
# What is not done yet, and what says that it is.
PENDING = _compile_phrases(
    """being; in the middle of; looking for; searching; vacant; still; waiting; pending; yet; in progress; to be;
    suchen?; noch; gerade; läuft""",
    "正在|还没|尚未|まだ|中です|ている",
)
DONE = _compile_phrases(
    """done; found; filled; resolved; closed; handed in; back; finished; completed?; ready; fixed; repaired;
    arrived; here;
    picked up; merged; submitted; over; all in;
    (?:ist|sind) da; gefunden; fertig; erledigt; gemacht; abgeschlossen; vorbei""",
    "完工|完成|好了|修好|完了|終わ|済み|ました",
)
# What the newer says instead of what it names here.
CORRECTED = compile_late(
    r"(?:, ?not|\brather than|\binstead of|\bstatt|, ?nicht"
    r"|\b(?:over|passed|moved|switched|changed|migrated)\b(?: \S+){0,4} from)"
    r" (?:the |an? |in |on |by |with |von )?([^\W\d_]+)"
)
# Of all or of none; of some alone.
WHOLE = _compile_phrases(
    """all; every; everyone; everybody; each; both; none; nobody(?! but); no one(?! but);
    alle; jede[rs]?; beide; keine[rs]?; niemand""",
    "所有|全部|每|すべて|全て|全員|誰も",
)
PART = _compile_phrases(
    """half; some; few; several; most; only; (?:one|two|three|four|five|six|[0-9]+) of; two; three; four;
    halbe?; einige; ein paar; nur""",
    "一半|部分|只有|半分|一部|しか",
)
# Of one not named: the newer may only say more.
VAGUE = _compile_phrases("some(?:one|body|thing); but an?; jemand; etwas", "有人|誰か")
ADDED = compile_late(r"[㐀-鿿ァ-ヿー]も")
HALT = compile_late(r"\bstop(?:s|ped)?(?= (?:at|in|by|here|there)\b)")  # a bus stops there: that denies nothing
MAY = compile_late(r"(?<=[0-9] )may\b|(?<=\bin )may\b|(?<=\bby )may\b")  # the month
MEANS = _set("with using via through mit called")
BY = _set("by von durch is are ist sind")
IS = _set("is are was were has have had ist sind war waren hat haben")
FOR, USE = _set("for für"), _set("use uses used using benutzen benutzt nutzen nutzt verwenden verwendet")
CLAUSE = compile_late(r"[,;，；](?=\D)|\s[–—-]\s")
NOISE = _compile_phrases(
    """now; no longer; any ?more; any longer; from now on; these days; as always; no wait; put off; not even; currently;
    nicht mehr; ab jetzt; jetzt; nicht einmal""",
    r"\binstead of \S+|\bstatt (?:in )?\S+"
    r"|^(?:the |my )?\w+ (?:says|tells me|told me|reckons|meint|sagt)\b(?: that\b)?",
)
NO_LONGER = compile_late(r"\bno longer\b|\bnicht mehr\b")
REASON = compile_late(
    r"(?:(?<=\w )(?:because|since|due to|weil|wegen|damit)\b|, (?:so|as|because|weil|damit)\b).*", re.DOTALL
)
NO_STATEMENT = compile_late(r"[!！]|[?？]$")
HIRAGANA_NOT = compile_late(r"ない|ません|なかった|なく|ず$")
