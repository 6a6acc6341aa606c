"""Word lists for `statements`, in English, German, Chinese and Japanese.

`STOP` are function words, `NEGATIVE` words deny. `LIGHT` words may be added or dropped by a denial. `PAST` words report
an event unless a word of `PRESENT` is there. Statements about different `PLACES` do not contradict each other. `ROLES`
have one holder, while words of `OPEN` take several values at once. `MEASURE` words have a value or introduce one.
`ADDITIVE` words say that something is added.
"""

import re

from memoryd.client.patterns import compile_late


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP = _set(
    """
a an the this that these those of to in on at by for with through via from into onto as yet per and or
but so than then during there here it its
is are was were be been being am do does did has have had having will would shall should can could may might must get
gets got i me my mine we us our ours you your yours he him his he she her hers they them their who which what when
where
please : just really very actually always ever up out over any ve because since yes well oh wait allowed permitted
possible required able keep kept put set raised lowered increased
der die das den dem des ein eine einen einem einer eines und oder ist sind war waren wird werden wurde hat haben hatte
habe ich mir mich mein meine meinen wir uns unser sie ihr es er im in am an auf bei mit von vom zu zum zur aus als wie
so für um ab noch immer schon darf kann muss nach hinaus man erst
的 仍 然 了 在 是 我 你 他 她 们 把 被 就 都 也 还 要 会 里 那 这 可 以 已 经 着 过 到 给 其 实 有 为 上 許 许 允
"""
)
NEGATIVE = _set(
    """
not no never none nobody nothing neither without cannot impossible unable unmöglich
missing lack lacks lacked forbid forbids ban bans banned quit quits refuse refuses refused reject rejects rejected
removed dropped
stop stopped forbidden prohibited off disabled
untersagt verboten fehlt fehlen nicht kein keine keinen keinem keiner keines nie niemals niemand ohne nichts
不 没 無 无 未 禁 别
"""
)
ADDITIVE = _set(
    """
also another additionally addition besides well further second extra other
auch weitere weiterer zusätzlich nebenbei ausserdem außerdem 也 还 另 又
"""
)
LIGHT = _set(
    """
need us all every each som most both few many much half everybody everyon somebody 所 些 每 alle jede jeder
einige paar meist meisten
"""
)
_OPPOSITES = """
open clos wet dry empty full paid unpaid public privat compulsory optional mandatory optional obligatory voluntary
manual automatic manually automatically onlin offlin lock unlock visibl hidden slow fast cheap expensiv
pass fail win los includ exclud cover exclud lov hat on off rais lower left right free busy married singl insid outsid
synchronous asynchronous
feucht trocken offen geschlossen leer voll geöffnet geschlossen pflicht freiwillig manuell automatisch
"""
OPPOSITES = frozenset(zip(_OPPOSITES.split()[::2], _OPPOSITES.split()[1::2], strict=True))
DENYING = ("un", "in", "im", "non", "non-", "dis")  # prefixes
OPPOSITES |= {(second, first) for first, second in OPPOSITES}
PAST = _set(
    """
was were had went took gave got saw ate came said did made bought visited ran found lasted happened released failed
finished started dauerte war waren hatte ging kam gab 昨 了
"""
)
PRESENT = _set("is are ist sind")
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
sandbox live staging production prod development dev test testing qa ci local demo preview linux macos windows mac
android ios home
office server client laptop desktop primary replica frontend backend
"""
)
ROLES = _set(
    """
own owns owned owner lead leads led leader manager manage manages responsible charge approve approved approves maintain
maintains maintainer go goes ask contact responsibility verantwortlich zuständig leitet macht betreut 责 担
"""
)
OPEN = _set(
    """
like likes love loves prefer prefers want wants speak speaks learn learns play plays read reads eat eats drink drinks
visit visits see saw met add adds added fix fixes fixed include includes
contain contains cover covers handle handles highlight highlights accept accepts
import imports export exports offer offers support supports
know knows went bought had discuss discussed mention mentioned write wrote watch watched
sell sells serve serves stock stocks teach teaches grow grows collect collects checks tests tracks
halt hält lists detect detects reports validate validates need needs require requires understand understands
own owns maintain maintains manage manages betreut leitet has have hat haben
pay pays cook cooks stop stops show shows display displays
bring brings brought provide provides expose exposes calculate calculates bietet bieten berechnet zeigt bringt
invite invited hire hired ordered book booked pack packed try tried enjoy enjoys hate hates
mag mögen spricht lernt liest kauft verkauft unterstützt enthält braucht besucht sah traf 买 卖 看 吃 喝 学 欢 带 种
"""
)
# Any of these shows that a text is English; none is a common word of another language.
ENGLISH = _set(
    """
the is are and with for from of to every each after before during until without when unless never always only we you
then there must should not does our your his her their uses use please i'm prefers likes owns runs has have will this
"""
)
CONTRACTED = _set("cannot isnt dont doesnt cant wont arent hasnt")
IN_FULL = {"can't": "can not", "cannot": "can not", "won't": "will not", "i'm": "I am", "it's": "it is"}
IN_FULL |= {"we'll": "we will", "i'll": "I will", "i've": "I have", "we've": "we have"}
IN_FULL |= {f"{who}'re": f"{who} are" for who in ("they", "we", "you")}
_VERBS = "is are was were do does did has have had should would could"
IN_FULL |= {f"{verb}n't": f"{verb} not" for verb in _VERBS.split()}

# A number before one of these is an amount, not an item number.
UNITS = _set(
    """
% percent euro euros dollar dollars pound pounds cent cents kilo kilos kg gram grams ton tons litre litres liter liters
pixel pixels px km metre metres meter meters mile miles cm mm second seconds minute minutes hour hours day days week
weeks month months
year years people seats rooms times degrees byte bytes kb mb gb tb prozent sekunde sekunden minute minuten stunde
stunden
tag tage tagen woche wochen monat monate monaten jahr jahre jahren kilometer leute personen mal grad
"""
)

# Words for quantities and for having one; between two statements about a value such words may differ freely.
MEASURE = _set(
    """
after amount balance begin begins bind binds capacity charge charges close closes cost costs cut date dates day daily
deadline default dosage dose duration end ends entries entry evening expire expires fee gets give gives go goes
hold holds hour hourly interval last lasts length limit line listen listens long longer max maximum min minimum monthly
move night nightly number nowadays only open opens operation pay pays per period portion price prescribed quota raised
rate release releases render rendered return returns run runs schedule scheduled ship ships size spend speed split start
starts take takes threshold time timeout total until use uses valid value weekly weigh weighs wide width yearly
beträgt betragen dauert gilt gelten kostet kosten zahlen zahlt eingestellt steht liegt höchstens mindestens beginnt
endet
设 定 大 小 数 量 值 限 最 共 約 额 費 料 設 開 始 終 了 時 間
"""
)
ABOUT = _set(
    """
about around roughly approximately nearly almost above below over under more fewer less least most than between
rund etwa circa ca über unter mehr weniger knapp fast 约 左 右 超 多 約
"""
)

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn",
)
_TENS = ("twenty thirty forty fifty sixty", "zwanzig dreißig vierzig fünfzig sechzig")
NUMBERS = {word: str(number) for ones in _ONES for number, word in enumerate(ones.split())}
NUMBERS |= {word: str(10 * number) for tens in _TENS for number, word in enumerate(tens.split(), 2)}


def _compile_phrases(spaced: str, other: str = "") -> re.Pattern[str]:
    """Return a pattern for the phrases between semicolons, as whole words, or for the pattern `other`."""
    found = "|".join(phrase.strip() for phrase in spaced.split(";"))
    return compile_late(rf"\b(?:{found})\b" + (f"|{other}" if other else ""))


# The newer statement says that something changed.
CHANGE = _compile_phrases(
    """now; no longer; any ?more; any longer; instead; from (?:now|here|today) on; going forward; these days;
    since then; since \\S+ (?:left|went|moved|quit); moved(?! in with); switched; swapped; changed; replaced;
    superseded; migrated; converted; relocated; transferred; renamed; rebranded; reassigned; became; turned into;
    turns out; since the; no wait; after all; misread; is wrong; is gone; had it wrong; mistaken; not \\S+ but;
    rather than; from (?:this|next) \\w+ on; ditched; dropped; abandoned; scrapped; put off; postponed; rescheduled;
    shifted; delayed (?:to|until); brought forward; moved up; (?:pushed|put) (?:back|to|out); push(?: \\S+){1,3} to;
    slipped to; extended to; shortened to; tak(?:en|es|ing) over; took over; handed; g[ai]ven? up; retired;
    (?:was|were|been) set to; passed (?:from|to); succeeded; stepped (?:in|down|up);
    (?:updat|upgrad|downgrad|rais|bump|increas|decreas|reduc|lower)ed(?: \\S+){0,2} to; cut to; doubled; halved; upped;
    (?:went|gone|goes) (?:up|down); (?:down|risen|rose|fell|fallen|grew|grown|shrank|climbed|dropped) to; jetzt; nun;
    statt(?= ); stattdessen; ab sofort; ab heute; künftig; nicht mehr; mittlerweile; inzwischen; seitdem; nur noch;
    neuerdings; sondern; verlegt; verschoben; vertagt; vorgezogen; umbenannt; umgezogen; umgestellt; gewechselt;
    geändert; ersetzt; abgelöst; ausgetauscht; getauscht; migriert; übernommen; übernimmt; übergeben; abgegeben;
    übertragen; angehoben; erhöht; gesenkt; reduziert; verlängert; verkürzt; gestiegen; gesunken""",
    r"^(?:since|as of|seit)\b|^not \w+,|^new\b[^:]*:"
    r"|\b\w{2,}(?:ed|unk|own) to (?:[0-9$€£]|one|two|three|four|five|six|seven|eight|nine|ten)\b"
    "|改|换|搬到|迁到|迁移|交给|移交|接手|接管|推迟|延期|延到|延长|缩短|提前到|调到|调整|涨到|降到|降至|降为|提高到"
    "|升|增加到|减少到|不再|现在|如今|变了|变成|变为|取代|代替|切换|转到|转给|不是.{0,40}而是"
    "|移行|移し|移った|変更|やめ|になりました|に変わ|なった|乗り換え|切り替え|置き換え|に変え|に代わ|に替え|引き継|交代|移転"
    "|延期|前倒し|に延び|延長|短縮|今は|今では|現在は|今後|ではなく|値上げ|値下げ|引き上げ|引き下げ|増やし|減らし",
)
# The newer statement may say that something changed, or why; less certain, used to order two answers. Also French.
RETOLD = _compile_phrases(
    """again; stopped; cancell?ed; closed; died; left; no more; back; settled; decided; agreed; rather; finally; since;
    as of; until; from .{1,15} on; because; so; too (?:long|many|much); seit; wieder; entschieden; wegen; désormais;
    depuis; n'est plus""",
    "以后|挪",
)
# The unambiguous part of ADDITIVE: "another one" may also be a replacement.
ADDITIVE_ALONE = ADDITIVE - _set("another second other extra further well weiterer")
# Something is not done yet, and something is done.
PENDING = _compile_phrases(
    """being; in the middle of; looking for; searching; vacant; still; waiting; awaiting; pending; yet; in progress;
    on hold; a draft; to be; ongoing; stuck; unresolved; unfinished; blocked; under (?:way|review); awaits?; haven't;
    hasn't; (?:have|has) not; on (?:its|their|the) way; working on; broken; out of order; suchen?; noch; gerade; läuft;
    wartet; warten; ausstehend; steht aus; unterwegs; kaputt; defekt; gesperrt""",
    "正在|还在|还没|未着手|尚未|等待|卡在|进行中|坏了|まだ|中です|ている|ていない|待ち|壊れ|故障",
)
DONE = _compile_phrases(
    """done; found; filled; resumed; resolved; answered; replied; responded; installed; agreed; sold; booked; solved;
    sorted; closed; handed in; back; finished; completed?; ready; fixed; beantwortet;
    repaired; arrived; here; delivered; shipped; released; landed; signed; approved; passed; paid; sent; restored;
    recovered; launched; published; works? again; unblocked; picked up; merged; submitted; over; all in;
    (?:ist|sind) da; gefunden; fertig; erledigt; gemacht; abgeschlossen; vorbei; behoben; gelöst; geschafft;
    eingereicht; angekommen; eingetroffen; repariert; bezahlt; unterschrieben; geliefert; beendet; bestanden;
    freigegeben; bewilligt; genehmigt; zugesagt; (?:geht|läuft|funktioniert) wieder""",
    "完工|完成|好了|修好|完了|交了|解决|通过了|合并|上线|发布|结束|搞定|修复|恢复|签了|终于"
    "|終わ|済み|ました|解決|直った|届い|復旧|できた",
)
# The newer statement names the value that it corrects.
CORRECTED = compile_late(
    r"(?:, ?not|\brather than|\binstead of|\bstatt|, ?nicht|\bnicht (?=der|die|das)|\bmoved out of|\baway from"
    r"|\breplac(?:ed|es)|\bditched|\bdropped|\babandoned|\bno(?= \S+ (?:(?:is|are) )?left)"
    r"|\b(?:over|passed|moved|switched|changed|migrated)\b(?: \S+){0,4} from)"
    r" (?:the |an? |in |on |by |with |von |der |die |das )?(\w[\w.]*\w)"
)
# About all or none, and about some.
WHOLE = _compile_phrases(
    """all; every; everyone; everybody; each; both; none; nobody(?! but| except); no one(?! but| except); entire;
    whole?; alle[rns]?; jede[rs]?; beide; keine[rs]?; niemand; sämtliche[rn]?""",
    "所有|全部|全体|每|すべて|全て|全員|みんな|誰も",
)
PART = _compile_phrases(
    """half; some; few; several; most; only; (?:one|two|three|four|five|six|[0-9]+) of; two; three; four; a third;
    a quarter; part of; partly; partially; all but; halbe?; hälfte; einige; ein paar; nur; manche; mehrere; wenige;
    ein teil; teils; teilweise""",
    "一半|部分|只有|还有|有些|少数|个别|半分|一部|しか|いくつか|ほとんど|数人|数名",
)
ADDED = compile_late(r"[㐀-鿿ァ-ヿー]も|\b(?:as well|on top of|in addition)\b|\btoo\b(?! (?:long|many|much)\b)", re.I)
IS = _set("is are was were has have had ist sind war waren hat haben")
FOR = _set("for für")
WITHIN = FOR | _set("of in on at with from by per im am bei von mit")
BY = _set("by von durch is are ist sind")
MEANS = _set("with using via through as mit als called :")
CLAUSE = compile_late(r"[,;，；](?=\D)|\s[–—-]\s")
NOISE = _compile_phrases(
    """now; no longer; any ?more; any longer; from now on; these days; as always; no wait; put off; not even;
    currently; going forward; from here on(?: out)?; from (?:this|next) \\w+ on; as of (?:today|now); nicht mehr;
    ab (?:jetzt|heute|sofort); jetzt; nicht einmal; künftig; sign(?:s|ed)? off;
    off (?:on|to|work); (?:days?|time) off""",
    r"\binstead of \S+|\bstatt (?:in )?\S+"
    r"|^(?:the |my )?\w+ (?:says|tells me|told me|reckons|meint|sagt)\b(?: that\b)?",
)
EXCEPT = compile_late(r"\b(?:except|außer)\b|以外|除了", re.I)
BUT = compile_late(r"\b(?:nobody|no one|none|nothing) (?:but|except|other than)\b|\bniemand außer\b")  # only these
# Conditions: statements under different conditions do not contradict each other.
CIRCUMSTANCE = compile_late(r"(?:in|on|at|for|under|during|when|if|while|bei|im|auf|wenn|für|während) ")
MAY = compile_late(r"(?<=[0-9] )may\b|(?<=\bin )may\b|(?<=\bby )may\b|\bmay(?= [0-9])")  # the month
ONE = compile_late(r"(?<!of )(?<!half )\b(?:an?|eine[mnr]?)(?= (?:second|minute|hour|sekunde|stunde)\b)")  # one hour
NOT_BEFORE = compile_late(  # "not before Monday" affirms Monday
    r"(?:\b(?:won't|will not|wird nicht)((?: \w+){1,3}) (?:before|vor)|(?:n't|\bnot)((?: \w+){1,3}) (?:until|till))\b"
)
REASON = compile_late(
    r"(?:(?<=\w )(?:because|since|due to|weil|wegen|damit)\b|, (?:so|as|because|weil|damit)\b).*", re.DOTALL
)
NO_LONGER = compile_late(r"\bno longer\b|\bnicht mehr\b|\btoo \w+ (?:for \w+ )?to\b")
# A question, an exclamation, thanks, a greeting.
NO_STATEMENT = compile_late(
    r"[!！]|[?？]$|^(?:thanks|thank you|thx|danke|谢谢|ありがとう|good (?:morning|afternoon|evening|night)"
    r"|guten (?:morgen|tag|abend)|gute nacht|早上好|晚上好|晚安|你好|おはよう|こんにちは|こんばんは|おやすみ)",
    re.I,
)
# A guess, or something undecided.
GUESS = compile_late(
    r"\b(?:maybe|perhaps|might|considering|wondering|thinking (?:about|of)|not sure|could try|idea:|what if|probably"
    r"|undecided|nothing (?:\w+ )?decided|no decision|someone should)\b|\?\s*$",
    re.I,
)
SURELY = "必ず"  # it ends like a denial
HIRAGANA_NOT = compile_late(r"ない|ません|なかった|なく|ず$")
