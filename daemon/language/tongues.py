"""Which language a text is in, as far as that is seen at a glance: by its script, in Latin script by its small words.

It is for shares of many texts, and told by what a model reads: a text that says nothing of its language has none.
"""

import re
from collections import Counter
from collections.abc import Iterable

LONGEST = 500  # characters looked at
_SHARE = 0.2  # of the letters that another script than Latin has at least
_FEWEST = 2  # different small words that show a language
_NAMED_WORDS = 40  # of all texts in a language together, from which on it is named to a person
_WORD = re.compile(r"[^\W\d_]+")
_IDENTIFIER = re.compile(r"\w[/_]\w|[^\W_]\d|\d[^\W_]")  # in a path or an identifier, whose parts are no words
_SCRIPTS = {  # the first that has letters names the language: Japanese texts have Chinese characters too
    "Japanese": re.compile("[\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f]"),
    "Korean": re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]"),
    "Chinese": re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"),
    "Cyrillic": re.compile("[\u0400-\u052f]"),
    "Greek": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "Arabic": re.compile("[\u0600-\u06ff\u0750-\u077f]"),
    "Hebrew": re.compile("[\u0590-\u05ff]"),
    "Hindi": re.compile("[\u0900-\u097f]"),
    "Thai": re.compile("[\u0e00-\u0e7f]"),
}
_SMALL_WORDS = {
    "English": """
        the of and to in is that it for was with on as are be this at not have from by but or an they we you i my
        our your which when where who what will can do does if so than then there no he she his her their
        its use uses used run runs set should must has had been were into out up all only after before
    """,
    "German": """
        der die das und ist nicht ein eine einen einem einer zu den dem des mit für auf im von sich auch es an
        werden wird wurde aus bei nach wie oder als noch nur ich wir sie er haben hat kann muss soll wenn
        dass kein keine zum zur über vor durch sind war ihr unser unsere mein meine
    """,
    "French": """
        le la les de des du un une et est que qui dans pour pas sur avec ce cette ces il elle nous vous je ne au aux
        par plus sont être ont mais ou où son sa ses notre votre leur leurs mon ma mes
    """,
    "Spanish": """
        el la los las de del que y en un una es se no por con para su al lo como más pero sus este esta son hay está
        ya muy sin sobre nuestro nuestra mi cuando desde usamos
    """,
    "Portuguese": """
        o os a de da dos das que e em um uma é se não por com para na nos nas ao mais como mas seu sua são está foi
        ser tem pelo pela isso este esta você nosso nossa
    """,
    "Italian": """
        il lo la i gli le di del della dei delle che e è un una in non per con su da al alla nel nella si come più
        ma sono questo questa ha anche dal dalla nostro nostra mio mia
    """,
    "Dutch": """
        de het een en van is niet dat die in te zijn op met voor aan er ook als door maar om naar bij uit wordt
        worden heeft hebben geen wij we ik je deze dit nog wel kan moet onze
    """,
    "Polish": """
        nie się na jest do że w z i to jak dla po od przez oraz są ale może być był było tylko już lub aby
    """,
    "Swedish": """
        och att det som en är på för av inte med den till har om ett de var från kan ska eller så vi jag när vid
        också
    """,
    "Turkish": """
        bir ve bu için ile de da değil olarak daha çok var gibi olan ya kadar ama ne her sonra
    """,
}
_LANGUAGES: dict[str, list[str]] = {}
for _name, _words in _SMALL_WORDS.items():
    for _word in _words.split():
        _LANGUAGES.setdefault(_word, []).append(_name)


def find_language(text: str) -> str:
    """Return the name of a text's language (Cyrillic: one that is written so), empty where it is not seen."""
    text = text[:LONGEST]
    words = _WORD.findall(" ".join(part for part in text.split() if not _IDENTIFIER.search(part)))
    if not text.isascii():
        letters = sum(map(len, words)) or 1
        counts = {name: len(script.findall(text)) for name, script in _SCRIPTS.items()}
        if sum(counts.values()) >= _SHARE * letters:
            return _name_script(counts)
    found = Counter(name for word in {word.lower() for word in words} for name in _LANGUAGES.get(word, ()))
    best, most = max(found.items(), key=lambda item: item[1], default=("", 0))
    if found["English"] == most:
        best = "English"
    return best if most >= _FEWEST else ""


def count_languages(texts: Iterable[str]) -> Counter[str]:
    """Return how many of some texts are in each language, of those languages that may be named to a person.

    Short texts of related languages share their small words, and English ones have some of others: what is in Latin
    script is named where there is enough of it.
    """
    counts, words = Counter[str](), Counter[str]()
    for text in texts:
        if language := find_language(text):
            counts[language] += 1
            words[language] += len(_WORD.findall(text[:LONGEST]))
    return Counter({name: n for name, n in counts.items() if name in _SCRIPTS or words[name] >= _NAMED_WORDS})


def is_telling(word: str) -> bool:
    """Return whether a word in lower case says what a text is about: no small word of a language, no lone character."""
    return len(word) > 1 and word not in _LANGUAGES


def _name_script(counts: dict[str, int]) -> str:
    if counts["Japanese"]:
        return "Japanese"
    return max(counts, key=counts.__getitem__)
