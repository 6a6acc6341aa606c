"""The words that dates are made of, by language: a table to extend. `forms` says in which order they make a date.

Each language has rows of a *kind* of word; in a row, each value and how people write it, separated by commas, in lower
case. Chinese and Japanese stand in one table, for they share most signs and are found within runs of text. A kind is
one letter, so that a text becomes a string of kinds and the form of a date is a regular expression over that string.

| kind | is | value |
|---|---|---|
| M, m | month; one that is also another word | its number |
| W, w, r | day of the week; its abbreviation; many of them | 0 is Monday |
| S | season | 1 is spring |
| H | holiday | month, day, how many days; month 0: from Easter Sunday; day -4: the fourth Thursday |
| Z | day counted from today | days |
| U | unit: day, week, month … | its name |
| R, p | which one: last, this, next; the same where it ends or begins now | -1, 0, 1 |
| P, y | unit and which one in a word; year counted from this one | unit and number; number |
| N, u, a, o | number; a few; an article, for one; ordinal number | it |
| 6 | half a year and the like | months |
| E, h | early, middle, late; half | 1, 2, 3; of what |
| c | decade | its first year |
| A, V, F | ago, behind its number; ago, before it; from now on | |
| B, T, &, b | begins a span; leads to its end; joins both; both, behind them | |
| <, > | before, after | |
| i, f, K | preposition; of; calendar week | |
| g | its week, the day before it: behind a day | the unit, or days |
| v, x, _ | each; nothing, though a word of it means something elsewhere; left out | |

`reading` makes more of figures: D a day (year, month, day), d one without a year, G a month of a year, I a week of a
year, Y a year, n a number; and of signs J a year and q a day of a month.
"""

Rows = dict[str, dict[object, str]]

ENGLISH: Rows = {
    "M": {
        1: "january",
        2: "february, feb",
        7: "july",
        9: "september, sept, sep",
        10: "october, oct",
        11: "november, nov",
        12: "december, dec",
    },
    "m": {1: "jan", 3: "march, mar", 4: "april, apr", 5: "may", 6: "june, jun", 7: "jul", 8: "august, aug"},
    "W": {
        0: "monday",
        1: "tuesday",
        2: "wednesday",
        3: "thursday",
        4: "friday",
        5: "saturday",
        6: "sunday",
    },
    "r": {number: f"{day}days" for number, day in enumerate("mon tues wednes thurs fri satur sun".split())},
    "v": {0: "every, each, most, any, usual"},
    "w": {0: "mon", 1: "tue, tues", 2: "wed, weds", 3: "thu, thur, thurs", 4: "fri", 5: "sat", 6: "sun"},
    "S": {
        1: "spring, springs, springtime",
        2: "summer, summers, summertime",
        3: "autumn, autumns, fall",
        4: "winter, winters",
    },
    "H": {
        (12, 25, 1): "christmas, christmas day, xmas",
        (12, 24, 1): "christmas eve",
        (12, 26, 1): "boxing day",
        (12, 31, 1): "new year's eve, new years eve",
        (1, 1, 1): "new year's day, new years day, new year's, new years",
        (2, 14, 1): "valentine's day, valentines day",
        (10, 31, 1): "halloween",
        (7, 4, 1): "independence day",
        (11, -4, 1): "thanksgiving, thanksgiving day",
        (0, 0, 1): "easter, easter sunday",
        (0, 1, 1): "easter monday",
        (0, -2, 1): "good friday",
    },
    "Z": {
        0: "today, tonight, this morning, this afternoon, this evening",
        -1: "yesterday, last night",
        -2: "day before yesterday",
        1: "tomorrow",
        2: "day after tomorrow",
    },
    "U": {
        "hour": "hour, hours, hrs",
        "day": "day, days",
        "week": "week, weeks, wk, wks",
        "weekend": "weekend, weekends",
        "fortnight": "fortnight, fortnights",
        "month": "month, months, mos",
        "quarter": "quarter, quarters",
        "year": "year, years, yr, yrs",
        "decade": "decade, decades",
    },
    "R": {-1: "last, previous, this past, this last, most recent", 0: "this, current", 1: "next, coming, upcoming"},
    "p": {-1: "past"},
    "P": {
        ("week", -2): "week before last",
        ("weekend", -2): "weekend before last",
        ("month", -2): "month before last",
        ("week", 2): "week after next",
        ("weekend", 2): "weekend after next",
        ("month", 2): "month after next",
    },
    "y": {-2: "year before last", 2: "year after next"},
    "N": {
        1: "one",
        2: "two, couple of, a couple of, couple, a couple",
        3: "three",
        4: "four",
        5: "five",
        6: "six",
        7: "seven",
        8: "eight",
        9: "nine",
        10: "ten",
        11: "eleven",
        12: "twelve",
        15: "fifteen",
        20: "twenty",
        30: "thirty",
    },
    "u": {3: "few, a few, several, some"},
    "a": {1: "a, an"},
    "o": {
        1: "first, 1st",
        2: "second, latter",
        3: "third",
        4: "fourth, forth",
        5: "fifth",
        6: "sixth",
        7: "seventh",
        8: "eighth",
        9: "ninth",
        10: "tenth",
        11: "eleventh",
        12: "twelfth",
        13: "thirteenth",
        14: "fourteenth",
        15: "fifteenth",
        16: "sixteenth",
        17: "seventeenth",
        18: "eighteenth",
        19: "nineteenth",
        20: "twentieth",
        21: "twenty-first, twenty first",
        22: "twenty-second, twenty second",
        23: "twenty-third, twenty third",
        24: "twenty-fourth, twenty fourth",
        25: "twenty-fifth, twenty fifth",
        26: "twenty-sixth, twenty sixth",
        27: "twenty-seventh, twenty seventh",
        28: "twenty-eighth, twenty eighth",
        29: "twenty-ninth, twenty ninth",
        30: "thirtieth",
        31: "thirty-first, thirty first",
    },
    "E": {
        1: "early, early on, beginning, start",
        2: "mid, middle, midway through",
        3: "late, end, tail end, close",
    },
    "h": {0: "half"},
    "c": {1950: "fifties", 1960: "sixties", 1970: "seventies", 1980: "eighties", 1990: "nineties"},
    "A": {0: "ago, back"},
    "6": {6: "half a year, half year", 18: "a year and a half, one and a half years"},
    "F": {0: "from now, hence"},
    "B": {0: "between, from"},
    "T": {0: "to, until, till, through, thru, up to"},
    "&": {0: "and, or"},
    "i": {word: word for word in "in on at during since over by within around about throughout for".split()},
    "f": {0: "of, starting, commencing, ending"},
    "K": {0: "cw, calendar week, week no, week number"},
    "<": {0: "before, prior to, preceding"},
    ">": {0: "after"},
    "x": {
        0: "a second, one second, may not, may be, may have, may i, may we, may you, may also, may need, may want, "
        "last name, first name, second hand, spring boot, spring cleaning, fall back, fall off, fall apart"
    },
    "_": {0: "the, morning, afternoon, evening, night, noon, midnight, lunchtime"},
}

GERMAN: Rows = {
    "M": {
        1: "januar, jänner",
        2: "februar, feber",
        3: "märz, mär, mrz, maerz",
        5: "mai",
        6: "juni",
        7: "juli",
        10: "oktober, okt",
        12: "dezember, dez",
    },
    "W": {
        0: "montag",
        1: "dienstag",
        2: "mittwoch",
        3: "donnerstag",
        4: "freitag",
        5: "samstag, sonnabend",
        6: "sonntag",
    },
    "S": {
        1: "frühling, frühjahr, frühlings, frühjahrs",
        2: "sommer, sommers",
        3: "herbst, herbstes, herbsts",
        4: "winter, winters",
    },
    "H": {
        (12, 24, 3): "weihnachten",
        (12, 24, 1): "heiligabend, heiliger abend, heiligen abend",
        (12, 25, 1): "erster weihnachtstag, ersten weihnachtstag, erster feiertag",
        (12, 26, 1): "zweiter weihnachtstag, zweiten weihnachtstag",
        (12, 31, 1): "silvester",
        (1, 1, 1): "neujahr, neujahrstag",
        (0, 0, 2): "ostern",
        (0, 0, 1): "ostersonntag",
        (0, 1, 1): "ostermontag",
        (0, -2, 1): "karfreitag",
        (0, 49, 2): "pfingsten",
        (0, 50, 1): "pfingstmontag",
    },
    "Z": {
        0: "heute, heute morgen, heute früh, heute abend",
        -1: "gestern, gestern morgen, gestern abend, letzte nacht, vergangene nacht",
        -2: "vorgestern",
        1: "morgen, morgen früh, morgen abend",
        2: "übermorgen",
    },
    "U": {
        "hour": "stunde, stunden",
        "day": "tag, tage, tagen, tages",
        "week": "woche, wochen",
        "weekend": "wochenende, wochenenden, wochenendes",
        "month": "monat, monate, monaten, monats, monates",
        "quarter": "quartal, quartale, quartals, quartalen",
        "year": "jahr, jahre, jahren, jahres, jahrs",
        "decade": "jahrzehnt, jahrzehnte, jahrzehnten",
    },
    "R": {
        -1: "letzte, letzten, letzter, letztes, letztem, vorige, vorigen, voriger, voriges, vorigem, vergangene, "
        "vergangenen, vergangener, vergangenes, vergangenem",
        0: "diese, diesen, dieser, dieses, diesem, laufenden",
        1: "nächste, nächsten, nächster, nächstes, nächstem, kommende, kommenden, kommender, kommendes, kommendem",
        -2: "vorletzte, vorletzten, vorletzter, vorletztes, vorletztem",
        2: "übernächste, übernächsten, übernächster, übernächstes, übernächstem",
    },
    "N": {
        2: "zwei",
        3: "drei",
        4: "vier",
        5: "fünf",
        6: "sechs",
        7: "sieben",
        8: "acht",
        9: "neun",
        10: "zehn",
        11: "elf",
        12: "zwölf",
        14: "vierzehn",
        20: "zwanzig",
        30: "dreißig",
    },
    "u": {3: "paar, ein paar, einigen, mehreren, wenigen"},
    "v": {0: "jeden, jede, jedes, jedem, jeder"},
    "a": {1: "ein, eine, einem, einen, einer, eines"},
    "o": {
        number: ", ".join(f"{stem}{end}" for end in ("e", "en", "er", "es", "em"))
        for number, stem in enumerate(
            "erst zweit dritt viert fünft sechst siebt acht neunt zehnt elft zwölft dreizehnt vierzehnt fünfzehnt "
            "sechzehnt siebzehnt achtzehnt neunzehnt zwanzigst".split(),
            1,
        )
    },
    "E": {
        1: "anfang, anfangs, beginn, zu beginn",
        2: "mitte",
        3: "ende, gegen ende",
    },
    "h": {0: "hälfte", "year": "jahreshälfte, halbjahr, halbjahres", "month": "monatshälfte"},
    "V": {0: "vor"},
    "6": {6: "einem halben jahr, ein halbes jahr, halben jahr", 18: "anderthalb jahren, eineinhalb jahren"},
    "B": {0: "zwischen, vom, von, ab"},
    "T": {0: "auf, bis, bis zum, bis zu, bis in den"},
    "&": {0: "und, oder"},
    "i": {word: word for word in "im am seit während um gegen zum".split()},
    "f": {0: "des"},
    "K": {0: "kw, kalenderwoche"},
    "<": {0: "vor dem"},
    ">": {0: "nach dem, nach"},
    "x": {0: "guten morgen, am morgen, der morgen, jeden morgen, am nächsten morgen, morgens"},
    "_": {0: "der, die, das, dem, den, abend, abends, früh, vormittag, mittag, mittags, nachmittag, nacht, nachts"},
}

CHINESE_JAPANESE: Rows = {
    "S": {
        1: "春天, 春季, 春",
        2: "夏天, 夏季, 夏",
        3: "秋天, 秋季, 秋",
        4: "冬天, 冬季, 冬",
    },
    "H": {
        (12, 25, 1): "圣诞节, 聖誕節, クリスマス",
        (12, 24, 1): "平安夜, クリスマスイブ, クリスマス・イブ",
        (1, 1, 1): "元旦, 元日",
        (1, 1, 3): "お正月, 正月",
        (12, 31, 1): "大晦日, 除夜",
        (10, 1, 1): "国庆节, 國慶節",
        (2, 14, 1): "情人节, バレンタインデー",
    },
    "Z": {
        0: "今天, 今日, 今早, 今晚, 今夜, 今朝, 今晩, きょう",
        -1: "昨天, 昨日, 昨晚, 昨夜, 昨晩, きのう",
        -2: "前天, 一昨日, おととい",
        -3: "大前天",
        1: "明天, 明日, あした",
        2: "后天, 後天, 明後日, あさって",
        3: "大后天, 大後天",
    },
    "y": {
        0: "今年, 本年",
        -1: "去年, 昨年, 上一年, 上年",
        -2: "前年, 一昨年, おととし",
        -3: "大前年, 一昨々年",
        1: "明年, 来年, 來年, 下一年",
        2: "后年, 後年, 再来年",
    },
    "P": {
        **{
            (unit, number): ", ".join(
                f"{which}{counter}{name}"
                for which in whiches.split()
                for counter in ("", "个", "個", "一个")
                for name in names.split()
            )
            for number, whiches in {-2: "上上", -1: "上", 0: "这 這 本", 1: "下", 2: "下下"}.items()
            for unit, names in {
                "week": "周 週 星期 礼拜 禮拜",
                "weekend": "周末 週末",
                "month": "月",
                "quarter": "季度",
            }.items()
        },
        ("week", 0): "本周, 这周, 這週, 这星期, 这个星期, 這個星期, 这礼拜, 这个礼拜, 本星期, 本週, 今週, 这一周",
        ("month", 0): "这个月, 這個月, 本月, 今月, 这月",
        ("week", -1): "上周, 上週, 上星期, 上个星期, 上個星期, 上礼拜, 上个礼拜, 上一周, 上个周, 先週",
        ("month", -1): "上个月, 上個月, 上月, 先月, 前月",
        ("week", 1): "下周, 下週, 下星期, 下个星期, 下個星期, 下礼拜, 下个礼拜, 下一周, 来週",
        ("month", 1): "下个月, 下個月, 下月, 来月",
        ("week", -2): "上上周, 上上週, 上上星期, 上上个星期, 上上礼拜, 先々週, 先先週",
        ("month", -2): "上上个月, 上上個月, 上上月, 先々月, 先先月",
        ("week", 2): "下下周, 下下週, 下下星期, 再来週",
        ("month", 2): "下下个月, 下下月, 再来月",
        ("weekend", 0): "这周末, 這週末, 本周末, 这个周末, 這個週末, 今週末, この週末",
        ("weekend", None): "周末, 週末",
        ("weekend", -1): "上周末, 上週末, 上个周末, 上個週末, 先週末, 先週の週末",
        ("weekend", 1): "下周末, 下週末, 下个周末, 来週末",
    },
    "p": {-1: "过去, 過去, 最近, 近, ここ", 1: "未来, 未來, 接下来, 今後"},
    "R": {0: "今, 这, 這, この, 这个, 這個", -1: "昨, 最后一个, 最後一個, 最后, 最終, 最後の", 1: "来, 次の"},
    "E": {
        1: "上旬, 初旬, 初頭, 初め, 初, 月初, 年初, のはじめ",
        2: "中旬, 半ば, 月中, 年中",
        3: "下旬, 末, 底, 月底, 月末, 年底, 年末, 终わり, 終わり",
    },
    "B": {0: "从, 從, 自"},
    "T": {0: "から, 到, 至, より"},
    "&": {0: "和, 或, と, や"},
    "v": {0: "每, 每个, 毎, 毎週"},
    "b": {0: "之间, 之間, の間"},
    "g": {
        "week": "那一周, 那周, 那週, 那个星期, 的那一周, 的那周, の週, 所在的一周",
        "weekend": "那个周末, 的那个周末, 那週末, の週末",
        -1: "前一天, 的前一天, 前日, の前日",
        1: "后一天, 的后一天, 第二天, 的第二天, 翌日, の翌日",
    },
    "x": {0: "一个半月, 一個半月"},
    "_": {
        0: "の, 的, まで, 間, 期间, 期間, 在, 份, ごろ, 頃, "
        "早上, 早晨, 上午, 中午, 下午, 晚上, 夜里, 朝, 夜, 夕方, 午前, 午後"
    },
}
