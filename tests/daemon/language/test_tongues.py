"""Which language a text is in, by its script and its small words."""

from each import each
from memoryd.daemon.language.tongues import count_languages, find_language


@each(
    ("text", "language"),
    [
        ("We moved the session cache to Valkey because of the licence.", "English"),
        ("The café is closed, so we meet at the Müller office.", "English"),
        ("Der Sitzungscache liegt jetzt in Valkey, nicht mehr in Redis.", "German"),
        ("Le cache des sessions est dans Valkey, plus dans Redis.", "French"),
        ("La caché de las sesiones está en Valkey y no en Redis.", "Spanish"),
        ("O cache das sessões não está mais em Redis, está em Valkey.", "Portuguese"),
        ("La cache delle sessioni è in Valkey, non più in Redis.", "Italian"),
        ("De cache van de sessies staat niet meer in Redis.", "Dutch"),
        ("Pamięć podręczna sesji nie jest już w Redis.", "Polish"),
        ("Sessionerna ligger i Valkey och inte längre i Redis.", "Swedish"),
        ("Bu proje için Redis değil, Valkey kullanılıyor.", "Turkish"),
        ("会话缓存使用 Valkey 8，不再使用 Redis。", "Chinese"),
        ("セッションのキャッシュは Valkey にあります。", "Japanese"),
        ("세션 캐시는 Valkey에 있습니다.", "Korean"),
        ("Кэш сессий теперь в Valkey, а не в Redis.", "Cyrillic"),
        ("ذاكرة الجلسات في Valkey وليست في Redis", "Arabic"),
        ("Η κρυφή μνήμη είναι στο Valkey.", "Greek"),
    ],
)
def test_a_sentence_is_in_its_language(text: str, language: str) -> None:
    assert find_language(text) == language


@each("text", ["", "42", "Valkey 8", "pytest -x --ff tests/client", "die", "🙂🙂", "\x00", "Müller GmbH"])
def test_a_text_that_shows_no_language_has_none(text: str) -> None:
    assert find_language(text) == ""


def test_a_word_of_another_script_does_not_make_a_text_foreign() -> None:
    assert find_language("The label says 東京 in large letters, and it is read by the scanner.") == "English"


def test_a_language_of_latin_script_is_named_from_forty_words_on_and_another_script_at_once() -> None:
    italian = "La cache delle sessioni è in Valkey, non più in Redis."  # ten words
    assert count_languages([italian] * 3) == {}
    assert count_languages([italian] * 4) == {"Italian": 4}
    assert count_languages([" ".join([italian] * 4)]) == {"Italian": 1}
    assert count_languages(["会话缓存使用 Valkey 8，不再使用 Redis。", italian]) == {"Chinese": 1}
