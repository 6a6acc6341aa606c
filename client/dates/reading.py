"""A text as the words that dates are made of, each with its kind (`words`); everything else is `x`, an end is `.`."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from memoryd.client.dates.words import CHINESE_JAPANESE, ENGLISH, GERMAN, Rows
from memoryd.client.patterns import compile_late

_CENTURY_TURNS = 40  # '39 is 2039, '40 is 1940
_MONTHS = 12


class DateWord(NamedTuple):
    """A word of a text: its kind, what it stands for, and where it is."""

    kind: str
    value: Any
    start: int
    end: int


def _collect(*languages: Rows) -> dict[str, tuple[str, Any]]:
    """Return each phrase of some languages with its kind and value; of a phrase in two the last one's."""
    return {
        " ".join(phrase.split()): (kind, value)
        for rows in languages
        for kind, values in rows.items()
        for value, phrases in values.items()
        for phrase in phrases.split(",")
    }


_PHRASES = _collect(GERMAN, ENGLISH)
_LONGEST: dict[str, int] = {}  # first word → how many words the longest phrase has that begins with it
for _phrase in _PHRASES:
    _first, *_others = _phrase.split(" ")
    _LONGEST[_first] = max(_LONGEST.get(_first, 1), 1 + len(_others))
_MONTH_NAMES = {name: number for name, (kind, number) in _PHRASES.items() if kind in "Mm"}
_WEEKDAY_NAMES = {name: number for name, (kind, number) in _PHRASES.items() if kind == "W"}
_SEASON_NAMES = {name: number for name, (kind, number) in _PHRASES.items() if kind == "S"}
_COMPOUNDS: dict[str, list[tuple[str, Any]]] = {  # German: "Maiwoche", "Januarhälfte", "Spätsommer", "Montagabend"
    **{
        f"{name}{part}": [known, ("M", month)]
        for name, month in _MONTH_NAMES.items()
        for part, known in {"woche": ("U", "week"), "wochenende": ("U", "weekend"), "hälfte": ("h", None)}.items()
    },
    **{
        f"{name}{part}": [("E", number), ("f", 0), ("U", unit)]
        for name, unit in {"jahres": "year", "monats": "month"}.items()
        for number, part in enumerate(("anfang", "mitte", "ende"), 1)
    },
    **{
        f"{part}{name}": [("E", number), ("S", season)]
        for name, season in _SEASON_NAMES.items()
        for number, part in enumerate(("früh", "hoch", "spät"), 1)
    },
    **{
        f"{name}{time}": [("W", weekday)]
        for name, weekday in _WEEKDAY_NAMES.items()
        for time in ("abend", "morgen", "nachmittag", "vormittag", "mittag", "nacht", "früh")
    },
}

_BEGINNINGS = frozenset(_LONGEST) | frozenset(_COMPOUNDS)

# Chinese and Japanese ------------------------------------------------------------------------------------------------

_FIGURES = {sign: number for number, sign in enumerate("〇一二三四五六七八九十")}
_FIGURES |= {"零": 0, "两": 2, "兩": 2}
_FEW = "几幾数數"
_NUMBER = rf"(?:\d{{1,4}}|[{''.join(_FIGURES)}]{{1,4}}|[{_FEW}])"
_WEEKDAYS = {sign: number for number, sign in enumerate("一二三四五六日")} | {"天": 6}
_WEEKDAYS_JAPANESE = {sign: number for number, sign in enumerate("月火水木金土日")}
_COUNTERS = {
    name: unit
    for unit, names in {
        "hour": "小时 小時 个小时 個小時 時間",
        "day": "天 日间 日間 日",
        "week": "周间 周 週间 週間 週 个星期 個星期 星期 个礼拜 个周",
        "month": "个月 個月 ヶ月間 ヶ月 か月間 か月 カ月間 カ月 ヵ月 ケ月 箇月",
        "year": "年间 年間 年",
    }.items()
    for name in names.split()
}
_ERAS = {"令和": 2018, "平成": 1988, "昭和": 1925}  # the year before the first
_WHICH = {"上上": -2, "上": -1, "这": 0, "這": 0, "本": 0, "下": 1, "下下": 2}
_JOINED = _collect(CHINESE_JAPANESE)
_counter = "|".join(sorted(_COUNTERS, key=len, reverse=True))
_week = "(?:周|週|星期|礼拜|禮拜)"
# What is made with numbers, then the words of the table; the longer first.
_RUN = compile_late(
    r"(?P<decade>(?:19|20)?\d0)年代"
    rf"|(?P<year>(?:19|20)\d\d|[一二][〇零一二三四五六七八九]{{3}})年(?![前后後](?!半)|[间間])"
    r"|(?P<short>\d\d)年(?=\d{1,2}月)"
    r"|(?P<odd>[一二两兩三四五六七八九\d][个個]半月)"
    r"|(?P<era>令和|平成|昭和)(?P<reign>\d\d?|元)年"
    r"|半(?P<halved>年|[个個]?月)(?:之|以)?(?P<half>[前后後])"
    rf"|(?P<count>{_NUMBER})(?P<counter>{_counter})(?:间|間)?(?:之|以)?(?P<away>[前后後])(?!半)"
    r"|(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])月(?![间間])"
    rf"|(?P<day>{_NUMBER})(?P<marked>日|号|號)(?![间間])"
    rf"|(?P<lasting>{_NUMBER})(?P<lasts>{_counter})"
    rf"|(?P<which>上上|上|这|這|本|下下|下)[个個]?{_week}(?P<its>[一二三四五六日天])"
    rf"|最[后後終终]の?一?[个個]?(?P<final>周末|週末|天|日(?!曜)|{_week}(?![一二三四五六日天]))"
    rf"|第(?P<nth3>{_NUMBER})(?P<nths3>[月火水木金土日])曜日?"
    rf"|第(?P<nth>{_NUMBER})[个個]?(?:{_week}(?P<nths>[一二三四五六日天])|(?P<unit>周末|週末|{_week}|季度|四半期))"
    r"|(?P<quarter>[一二三四1-4])季度"
    rf"|{_week}(?P<weekday>[一二三四五六日天])"
    r"|(?P<weekday2>[月火水木金土日])曜日?"
    r"|(?P<part>[上下前後])半(?P<whole>年|月|期)?"
    rf"|(?P<word>{'|'.join(sorted(_JOINED, key=len, reverse=True))})"
)

# What texts are split into -------------------------------------------------------------------------------------------

_TOKEN = compile_late(
    r"(?P<letters>(?![qh][1-4]\b)[a-zà-öø-ɏ]+(?:'[a-z]+)?)"
    r"|(?<![^\W_])[qQ](?P<quarter>[1-4])\b"
    r"|(?<=\d)q(?P<quarter2>[1-4])\b"
    r"|\bh(?P<half>[12])\b"
    r"|(?P<run>(?:\d{0,4}[\u3005-\u3007\u3041-\u30ff\u3400-\u9fff]+)+)"
    r"|(?<![a-z0-9_./:])(?<![\w/]-)(?:"
    r"(?P<y>(?:19|20)\d\d)(?P<sep>[-/.])(?P<m>\d{1,2})(?P=sep)(?P<d>\d{1,2})(?!\d)(?:[t ]\d\d:\d\d[\d:.+z]*)?"
    r"|(?P<packed>(?:19|20)\d\d[01]\d[0-3]\d)(?!\d|\.\d)"
    r"|(?P<wy>(?:19|20)\d\d)-?w(?P<w>\d\d?)\b"
    r"|(?P<gy>(?:19|20)\d\d)(?:[-/](?P<gm>0[1-9]|1[0-2])|/(?P<gm1>[1-9]))(?![\d/-])"
    r"|(?P<one>\d{1,2})(?P<sep2>[-/.])(?P<two>\d{1,2})(?P=sep2)(?P<three>(?:19|20)\d\d|(?<=\d\d.\d\d.)\d\d)(?!\d|\.\d)"
    r"|(?:(?<=am )|(?<=om )|(?<=um ))(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<yy>\d\d)(?!\d|\.\d)"
    r"|(?P<mm>0?[1-9]|1[0-2])[/.](?P<my>(?:19|20)\d\d)(?!\d|\.\d)"
    r"|(?P<dd>\d{1,2})\.(?P<dm>0?[1-9]|1[0-2])\.(?!\d)"
    r"|(?P<us>\d{1,2})/(?P<us2>\d{1,2})(?![\d/])"
    r"|(?P<time>\d{1,2}(?::\d\d)+(?:\s?[ap]\.?m\b\.?)?|\d{1,2}\s?[ap]\.?m\b\.?|\d{1,2}(?:[:.]\d\d)? uhr\b)"
    r"|(?P<decade>(?:19|20)\d0)(?:'?s|ern?)\b"
    r"|(?P<decade2>[5-9]0)(?:'?s|ern?)\b)"
    r"|'(?P<short>\d\d)(?!\w)"
    r"|(?P<digits>\d+)(?P<nth>(?:st|nd|rd|th)\b|\.(?=\s*(?:[^\W\d_]|[-–—]\s*\d)))?(?:'s\b)?"
    r"|(?P<dash>[-–—~〜～])|(?P<comma>[,，、])|(?P<stop>[^\s\w\"']|\n)"
)
_PLAIN = str.maketrans("０１２３４５６７８９’", "0123456789'")
_SPACED = compile_late(r"(?<=\d) (?=[年月日号])|(?<=[年月]) (?=\d)")


def read_words(text: str) -> list[DateWord]:
    """Return the words of a text in lower case."""
    if not text.isascii():
        text = _SPACED.sub("", text.translate(_PLAIN))
    found: list[DateWord] = []
    tokens = list(_TOKEN.finditer(text))
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token.lastgroup == "letters":
            if (word := token[0]) in _BEGINNINGS or "'" in word:
                place += _read_phrase(found, tokens, place)
                continue
            if not found or found[-1].kind != "x":
                found.append(DateWord("x", word, *token.span()))
            place += 1
            continue
        _READERS.get(token.lastgroup or "", _read_figures)(found, token)
        place += 1
    return _join_years(found)


def _read_phrase(found: list[DateWord], tokens: Sequence[re.Match[str]], place: int) -> int:
    """Add the longest phrase that begins with a token; return how many tokens it takes."""
    word = tokens[place][0]
    start, end = tokens[place].span()
    known, took, said = _PHRASES.get(word), 1, word
    if (longest := _LONGEST.get(word, 1)) > 1:
        words, last = 1, place
        while words < longest and last + 1 < len(tokens):
            last += 1
            is_hyphen = tokens[last].lastgroup == "dash" and tokens[last].start() == tokens[last - 1].end()
            if is_hyphen and last + 1 < len(tokens) and tokens[last + 1].start() == tokens[last].end():
                last += 1
            if tokens[last].lastgroup != "letters":
                break
            words += 1
            said = f"{said} {tokens[last][0]}"
            if said in _PHRASES:
                known, took, end = _PHRASES[said], last + 1 - place, tokens[last].end()
    if known is None:
        known = _PHRASES.get(word.removesuffix("'s"))
    if known is None:
        for kind, value in _COMPOUNDS.get(word, [("x", word)]):
            _add(found, kind, value, start, end)
    elif known[0] == "6":
        found += [DateWord("N", known[1], start, end), DateWord("U", "month", start, end)]
    elif known[0] != "_":
        _add(found, *known, start, end)
    return took


def _add(found: list[DateWord], kind: str, value: Any, start: int, end: int) -> None:
    """Add a word; of several in a row that mean nothing the first one stands for all."""
    if kind != "x" or not found or found[-1].kind != "x":
        found.append(DateWord(kind, value, start, end))


def _read_digits(found: list[DateWord], token: re.Match[str]) -> None:
    digits, span = token["digits"], token.span()
    if len(digits) == 4 and digits[:2] in ("19", "20"):
        kind = "Y"
    else:
        kind = "x" if len(digits) > 3 else "o" if token["nth"] else "n"
    found.append(DateWord(kind, int(digits[:9]), *span))


def _read_dash(found: list[DateWord], token: re.Match[str]) -> None:
    found.append(DateWord("-", 0, *token.span()))


def _read_comma(found: list[DateWord], token: re.Match[str]) -> None:
    found.append(DateWord(",", 0, *token.span()))


def _read_stop(found: list[DateWord], token: re.Match[str]) -> None:
    """Add an end, unless it is that of an abbreviation: "Jan. 2024"."""
    is_abbreviation = bool(found) and found[-1].kind in "MmwK" and found[-1].end == token.start()
    if token[0] != "." or not is_abbreviation:
        found.append(DateWord("." if token[0] != "/" else "/", 0, *token.span()))


def _read_figures(found: list[DateWord], token: re.Match[str]) -> None:
    """Add a date in figures; nothing for a time of day."""
    if known := _read_date(token) or _read_period(token):
        found.append(DateWord(*known, *token.span()))
    elif half := token["half"]:
        found += [DateWord("o", int(half), *token.span()), DateWord("h", "of a year", *token.span())]
    elif quarter := token["quarter"] or token["quarter2"]:
        found += [DateWord("o", int(quarter), *token.span()), DateWord("U", "quarter", *token.span())]
    elif not token["time"]:
        found.append(DateWord("x", "", *token.span()))


def _read_date(token: re.Match[str]) -> tuple[str, Any] | None:
    if token["y"]:
        return "D", (int(token["y"]), int(token["m"]), int(token["d"]))
    if packed := token["packed"]:
        return "D", (int(packed[:4]), int(packed[4:6]), int(packed[6:]))
    if token["three"]:
        year = token["three"]
        day = _order_day(int(token["one"]), int(token["two"]), is_day_first=token["sep2"] == ".")
        return ("D", (int(year) if len(year) == 4 else _widen_year(year), *day)) if day else None
    if token["yy"]:
        return "D", (_widen_year(token["yy"]), int(token["month"]), int(token["day"]))
    if token["dd"]:
        return "d", (int(token["dm"]), int(token["dd"]))
    if token["us"] and (day := _order_day(int(token["us"]), int(token["us2"]), is_day_first=False)):
        return "d", day
    return None


def _order_day(one: int, two: int, is_day_first: bool) -> tuple[int, int] | None:
    """Return month and day of two numbers, None where it may be either way."""
    if is_day_first or one > _MONTHS:
        return two, one
    return (one, two) if two > _MONTHS or one == two else None


def _read_period(token: re.Match[str]) -> tuple[str, Any] | None:
    if token["wy"]:
        return "I", (int(token["wy"]), int(token["w"]))
    if year := token["gy"] or token["my"]:
        return "G", (int(year), int(token["gm"] or token["gm1"] or token["mm"]))
    if token["short"]:
        return "Y", _widen_year(token["short"])
    if decade := token["decade"] or token["decade2"]:
        return "c", int(decade) if len(decade) == 4 else 1900 + int(decade)
    return None


def _widen_year(digits: str) -> int:
    return int(digits) + (1900 if int(digits) >= _CENTURY_TURNS else 2000)


def _read_run(found: list[DateWord], token: re.Match[str]) -> None:
    """Add the words of a run of Chinese or Japanese."""
    offset, last = token.start(), 0
    for match in _RUN.finditer(token[0]):
        start, end = offset + match.start(), offset + match.end()
        if match.start() > last:
            found.append(DateWord("x", "", offset + last, start))
        last = match.end()
        found += [DateWord(kind, value, start, end) for kind, value in _read_signs(match) if kind != "_"]
    if last < len(token[0]):
        found.append(DateWord("x", "", offset + last, token.end()))


def _read_signs(match: re.Match[str]) -> list[tuple[str, Any]]:
    part = match.groupdict()
    if word := part["word"]:
        return [_JOINED[word]]
    if year := part["year"]:
        return [("J", int("".join(sign if sign.isdigit() else str(_FIGURES[sign]) for sign in year)))]
    if part["odd"]:
        return [("x", "")]  # and a half
    if part["short"]:
        return [("J", _widen_year(part["short"]))]
    if part["era"]:
        return [("J", _ERAS[part["era"]] + (1 if part["reign"] == "元" else int(part["reign"])))]
    if part["decade"]:
        return [("c", int(part["decade"]) if len(part["decade"]) > 2 else 1900 + int(part["decade"]))]
    if part["final"]:
        unit = {"周末": "weekend", "週末": "weekend", "天": "day", "日": "day"}.get(part["final"], "week")
        return [("R", -1), ("U", unit)]
    if part["half"]:
        half = (6, "month") if part["halved"] == "年" else (15, "day")
        return [("N", half[0]), ("U", half[1]), ("A" if part["half"] == "前" else "F", 0)]
    if part["count"]:
        away = "A" if part["away"] == "前" else "F"
        return [_count_or_few(part["count"]), ("U", _COUNTERS[part["counter"]]), (away, 0)]
    if part["month"]:
        return [("M", _count(part["month"]))]
    if part["day"]:
        return [("q" if part["marked"] == "日" else "o", _count(part["day"]))]  # "2号" may be any number two
    if part["lasting"]:
        return [_count_or_few(part["lasting"]), ("U", _COUNTERS[part["lasts"]])]
    if part["which"]:
        return [("P", ("week", _WHICH[part["which"]])), ("W", _WEEKDAYS[part["its"]])]
    if part["nths3"]:
        return [("o", _count(part["nth3"])), ("W", _WEEKDAYS_JAPANESE[part["nths3"]])]
    if part["nths"]:
        return [("o", _count(part["nth"])), ("W", _WEEKDAYS[part["nths"]])]
    if unit := part["unit"]:
        name = "weekend" if unit in ("周末", "週末") else "quarter" if unit in ("季度", "四半期") else "week"
        return [("o", _count(part["nth"])), ("U", name)]
    if part["quarter"]:
        return [("o", _count(part["quarter"])), ("U", "quarter")]
    if part["weekday"]:
        return [("W", _WEEKDAYS[part["weekday"]])]
    if part["weekday2"]:
        return [("W", _WEEKDAYS_JAPANESE[part["weekday2"]])]
    whole = "month" if part["whole"] == "月" else "year" if part["whole"] else None
    return [("o", 1 if part["part"] in "上前" else 2), ("h", whole)]


def _count_or_few(number: str) -> tuple[str, int]:
    return ("u", 3) if number in _FEW else ("N", _count(number))


def _count(number: str) -> int:
    """Return a number that is written in figures or in signs: "21", "二十一"."""
    if number.isdigit():
        return int(number)
    tens, ten, ones = number.rpartition("十")
    if not ten:
        return int("".join(str(_FIGURES[sign]) for sign in number))
    return 10 * (_FIGURES[tens[-1]] if tens else 1) + (_FIGURES[ones[0]] if ones else 0)


_READERS = {
    "digits": _read_digits,
    "nth": _read_digits,
    "dash": _read_dash,
    "comma": _read_comma,
    "stop": _read_stop,
    "run": _read_run,
}


def _join_years(words: list[DateWord]) -> list[DateWord]:
    """Return the words with "last year", "two years ago", "the year 2023" as one."""
    if not any(word.value == "year" for word in words):
        return words
    joined: list[DateWord] = []
    for word in words:
        kinds = "".join(one.kind for one in joined[-2:])
        if word.kind == "U" and word.value == "year" and kinds[-1:] == "R":
            which = joined.pop()
            word = DateWord("y", which.value, which.start, word.end)
        elif word.kind == "U" and word.value == "year" and kinds in ("Vn", "VN", "Va"):
            count, before = joined.pop(), joined.pop()
            word = DateWord("y", -count.value, before.start, word.end)
        elif word.kind == "A" and kinds in ("nU", "NU", "aU") and joined[-1].value == "year":
            joined.pop()
            count = joined.pop()
            word = DateWord("y", -count.value, count.start, word.end)
        elif word.kind == "Y" and kinds[-1:] == "U" and joined[-1].value == "year":
            word = DateWord("J", word.value, joined.pop().start, word.end)
        joined.append(word)
    return joined


# Whether to read at all ----------------------------------------------------------------------------------------------

_LETTERS = re.compile(r"[^\W\d_]+")
_IN_FIGURES = re.compile(
    r"\d(?:[-/]\d|\.\d\d?\.|\d{3}|(?:st|nd|rd|th)\b|0(?:s|ern?)\b)|(?<=')\d\d\b|(?<=\b[qh])[1-4]\b|(?<=\dq)[1-4]\b"
)
_SIGNS = "年月日周週天曜号號昨今春夏秋冬末"
_IN_SIGNS = re.compile(
    f"[{_SIGNS}]|星期|礼拜|四半期|季度|"
    + "|".join(name for name, (kind, _) in _JOINED.items() if kind in "HZPy" and not set(name) & set(_SIGNS))
)
_TELLING = frozenset(
    word for phrase, (kind, _) in _PHRASES.items() if kind in "MmWwrSHZUyAK6c" for word in _LETTERS.findall(phrase)
)
_TELLING -= frozenset(
    "a after and back before close day eve good half hour last midway new next no number of on".split()
)
_TELLING -= frozenset("one s tag tages the this through früh".split())
_TELLING |= frozenset(_COMPOUNDS)


def may_name_a_date(text: str) -> bool:
    """Return, quickly, whether a text in lower case may name a date."""
    return (
        not _TELLING.isdisjoint(_LETTERS.findall(text))
        or _IN_FIGURES.search(text) is not None
        or (not text.isascii() and _IN_SIGNS.search(text) is not None)
    )
