"""Guess the language of a text: by its script, or by function words in Latin script.

This is for statistics over many texts; a text without clear signs has no language.
"""

import re
from collections import Counter
from collections.abc import Iterable

LONGEST = 500  # characters examined
_SHARE = 0.2  # minimum share of letters in a script other than Latin
_FEWEST = 2  # different function words that identify a language
_NAMED_WORDS = 40  # minimum of all texts in a language together for it to be reported
_WORD = re.compile(r"[^\W\d_]+")
_IDENTIFIER = re.compile(
    r"\w[/_]\w|[^\W_]\d|\d[^\W_]"
)  # characters of paths and identifiers, whose parts are not words
_SCRIPTS = {  # one Japanese character decides, since Japanese texts contain Chinese characters
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
    """Return the language of a text (or `Cyrillic` for any in that script), empty if it is not clear."""
    text = text[:LONGEST]
    words = _WORD.findall(" ".join(part for part in text.split() if not _IDENTIFIER.search(part)))
    if not text.isascii():
        letters = sum(map(len, words)) or 1
        counts = {name: len(script.findall(text)) for name, script in _SCRIPTS.items()}
        if sum(counts.values()) >= _SHARE * letters:
            return "Japanese" if counts["Japanese"] else max(counts, key=counts.__getitem__)
    found = Counter(name for word in {word.lower() for word in words} for name in _LANGUAGES.get(word, ()))
    best, most = max(found.items(), key=lambda item: item[1], default=("", 0))
    if found["English"] == most:
        best = "English"
    return best if most >= _FEWEST else ""


def count_languages(texts: Iterable[str]) -> Counter[str]:
    """Count the texts in each language that is certain enough to be reported.

    Related languages share function words, and English texts contain some of others, so a language in Latin script
    counts only if there is enough text in it.
    """
    counts, words = Counter[str](), Counter[str]()
    for text in texts:
        if language := find_language(text):
            counts[language] += 1
            words[language] += len(_WORD.findall(text[:LONGEST]))
    return Counter({name: n for name, n in counts.items() if name in _SCRIPTS or words[name] >= _NAMED_WORDS})


def is_telling(word: str) -> bool:
    """Return whether a word in lower case is a content word, not a function word or a single character."""
    return len(word) > 1 and word not in _LANGUAGES
