"""Credentials that only their name gives away: `password = …`, `"api_key": "…"`, "the password is …".

A value is one when it looks made rather than meant: what it must have depends on how telling the name is. Names of
variables, calls, types, placeholders and plain words are none.

Every pattern looks at a bounded part of the text, and what is within a credential is not looked at again, so a text
takes time in proportion to its length.
"""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from memoryd.client.patterns import compile_late

NAMES = (
    *("password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "mot de passe", "contraseña", "pwd"),
    *("pass", "secret", "credential", "token", "key"),
    *("pw", "senha", "wachtwoord", "parola", "palavra-passe", "adgangskode", "salasana", "contrasena", "heslo"),
)
_FOREIGN_NAMES = (
    *("密码", "密碼", "口令", "パスワード", "비밀번호", "암호", "пароль", "пароля", "hasło", "lösenord", "şifre"),
    *("jelszó", "κωδικός", "mật khẩu", "รหัสผ่าน", "كلمة المرور", "סיסמה", "पासवर्ड"),
)
_KEYS = compile_late(
    r"(?:api|app|access|auth|private|signing|encryption|master|account|service|subscription|secret)[ _-]?",
    re.IGNORECASE,
)
_LONGEST_BEFORE_KEY = 13
_PASSES = tuple(
    f"{whose}_"
    for whose in "db database mysql pg postgres redis smtp mail ssh sudo become root user admin ldap ftp proxy".split()
)
_PUBLIC = ("publickey", "public_key_", "public-key-")  # the token of an assembly's public key is no secret
_REST = (
    r"(?:s\b)?(?:[ _-]?(?:access[ _-]?)?key)?"
    r"(?:[_-]?(?:value|string|text|plain|prod|dev|live|test|b64|base(?:64)?)|[12])?"
)
_MOST, _MOST_SHORT = 400, 200  # characters of a value: where it is longer it is cut
_QUOTED = rf"(?P<quote>[\"'`])(?P<quoted>[^\"'`\s]{{4,{_MOST}}}+)(?P=quote)"
_BARE = rf"(?P<bare>[^\s\"'`,;<>()\[\]{{}}|\\]{{4,{_MOST}}}+)(?![(\[{{<])"
_LONGEST_BETWEEN = 40  # from a name to its value, apart from white space
_VALUE = rf"\\?(?:(?:@|[bru]{{1,2}})?{_QUOTED}|{_BARE})"
_NEXT_LINE = r"[ \t]{0,2}(?:\\|[|>][-+]?)?\r?\n[ \t]{1,8}"
_TYPE = r"[ \t]?:?[ \t]{1,2}(?:str|string|SecretStr)(?=[ \t]{0,4}=)"
_VALUE_OF_NAME = r"[\"']?,?\s{1,20}[\"']?value(?=[\"' \t:=])"  # `name: X, value: …`
_ASSIGNED = compile_late(
    rf"{_REST}(?:{_TYPE}|{_VALUE_OF_NAME})?(?P<between>[\\\"'\[\]*]{{0,4}}[ \t]{{0,4}}"
    rf"(?P<sign>:{{1,3}}=|[?+.]=|=>|={{1,3}}|%3D|[:：])(?:[ \t]{{0,4}}|{_NEXT_LINE}))"
    rf"{_VALUE}",
    re.IGNORECASE,
)
_SAID = compile_late(
    rf"{_REST} (?:(?:for|of|to|on|in|für|zum|von|pour|de|du) (?:[\w'.:/-]{{1,40}} ){{0,4}}?)?"
    r"(?:(?:(?:is |was )?(?:changed |set |reset ))?to|is|was|=|lautet|ist|est|es)(?: now| still| just)?"
    rf"(?:[: ][ \t]{{0,2}}|:?{_NEXT_LINE}){_VALUE}",
    re.IGNORECASE,
)
_SAID_THERE = compile_late(rf"[ \t]?(?:是|为|為|は|が|이|은|는|это|είναι|je|jest|to)[ \t:：]{{0,2}}{_VALUE}")
_NEXT = compile_late(
    rf"{_REST}(?:[\"'`]?[ \t]{{0,2}}[,|][ \t]{{0,2}}|\((?=[\"'`])|[ \t]{{1,2}}){_VALUE}", re.IGNORECASE
)
_OPTION = compile_late(rf"[ =]{_VALUE}")
_BEFORE_OPTION = compile_late(r"(?:^|[\s\"'`])--?(?:[a-z]+-){0,4}$")
_SET = compile_late(rf"[ \t]{{1,4}}{_VALUE}")
_BEFORE_SET = compile_late(r"\b(?:ENV|setenv|set(?: -\w{1,9}){1,3})[ \t]{1,4}\w{0,60}$")
_ELEMENT = compile_late(rf">\s{{0,8}}(?P<bare>[^<\s]{{4,{_MOST}}}+)\s{{0,8}}<")
_LOGIN = compile_late(rf"\s{{1,4}}(?P<bare>\S{{4,{_MOST_SHORT}}})")
_BEFORE_LOGIN = compile_late(r"\blogin\s{1,4}\S{1,100}\s{1,4}$", re.IGNORECASE)
_IDENTIFIED = compile_late(r"identified(?: with \w{1,40})? by '(?P<quoted>[^'\s]{4,200}+)'", re.IGNORECASE)
_USER = compile_late(
    r"\s(?:-u|--user)(?:=|\s{1,5})(?P<open>['\"]?)"
    r"(?:(?P<whole>[^\s:'\"$]{8,200}):(?P=open)(?=\s)|[^\s:'\"]{0,80}['\"]?:['\"]?(?P<bare>[^\s'\"]{4,200}))"
)
_LONGEST_AFTER_CURL = 204  # with its name
_PARAMETER = compile_late(r"&\w{1,40}=|%26\w{1,40}%3D", re.IGNORECASE)
_BEFORE_PLAIN = compile_late(r"(?:^|\s)[A-Z0-9_]*$|[?&;]\w*$")
_BEFORE_JSON = compile_late(r"\"[\w.-]{0,40}$")
_BEFORE_YAML = compile_late(r"(?:^|\n)[ \t]*(?:- )?[\w.-]{0,40}$")
_PHRASE = compile_late(r"[a-z]{3,12}(?:[-_.][a-z]{3,12}){2,7}")
_LONGEST_KEY = 200  # characters of its end
_NAME_AT_END = compile_late(r"(?:[_ -]?(?:value|string|text|plain|prod|dev|live|test|b64|base64)|[12s])?$")

_EMPTY = compile_late(
    r"your|example|sample|placeholder|change[_-]?me|replace|redacted|insert|x{4}|\*{3}|\.{3}|…|\[secret: |dummy|todo"
    r"|goes[_-]?here|foobar|lorem|&(?:quot|lt|gt|amp|\#)",
    re.IGNORECASE,
)
_REFERENCE = compile_late(
    r"[$%{<\[&@#/~]|\w+://|(?:env|var|vault|secrets?|config|settings|self|process|os)\b[.:]|!vault\b", re.I
)
_PLAIN = frozenset(
    "password passwd passphrase passcode secret token string integer number boolean object required optional none null"
    " true false default undefined hidden masked username credential credentials apikey api_key pass pwd str bytes"
    " testing tested wrong invalid missing expired unknown empty disabled enabled changed".split()
)
# What forms, types and rules say of passwords.
_LABELS = frozenset(
    "the and for with must not least most minimum maximum eight twelve characters character length long strong weak"
    " reset forgot forgotten change update confirm repeat verify verification enter type input field form page link"
    " button label text hash hashed bcrypt argon salted encrypted encryption protected policy manager generator auth"
    " authentication required mandatory user account login email name file path url env var variable config settings"
    " module class function object instance client server service store vault provider handler based only see ask"
    " kubernetes secret default public private prompt interactive stdin redacted removed omitted".split()
)
_TECHNICAL = compile_late(
    r"(?:[vxhsp]\d{1,4}(?![a-z0-9])|(?:base|sha|md|utf|ascii|latin|rsa|ed|aes|blake|argon|bcrypt|scrypt|pbkdf|hs|rs|es|oauth|http|ipv?|py|u?int|"
    r"float|mp|ec|k8|win|log|web|base_|i18n|l10n|oauth|saml|tls|ssl|ldap|ntlm|wpa|pkcs|rfc|pep|python|cl)[_-]?\d)",
    re.IGNORECASE,
)
_IDENTIFIER = compile_late(r"[A-Za-z_][A-Za-z_]*\d{0,2}(?:[.:>-]+[A-Za-z_][A-Za-z_]*\d{0,2})*[.:]?")
_WORDS = compile_late(r"[A-Za-z]+\d{0,2}(?:[_./:-][A-Za-z]*\d{0,2})+")
_TYPE_OF_KEY = compile_late(r"[a-z](?:Key|Token|Secret)(?:s|Types?)?$")
_DIGIT = compile_late(r"[0-9]")
_STRONG = compile_late(r"[!@#$%^&*?~+=|]")
_EMPTY_PARTS = (  # of which one is in whatever `_EMPTY` finds
    *("your", "example", "sample", "placeholder", "change", "replace", "redacted", "insert", "xxxx", "***", "...", "…"),
    *("[secret: ", "dummy", "todo", "goes", "foobar", "lorem", "&"),
)
_MIN_TOKEN, _MIN_SECRET, _MIN_PASSWORD = 16, 8, 6
_MIN_WORD = 8  # of letters alone
_MIN_UNSAID = 20  # where nothing says that it is one
_LONGEST_PLAIN = 32
_HEX_BITS, _TEXT_BITS = 2.8, 3.2  # of entropy per character from which a key looks made: words have less
_KINDS = ("secret", "credential", "token", "key")


class Assigned(NamedTuple):
    """A credential found by its name: the name, and its position."""

    kind: str
    start: int
    end: int
    cut: bool = False  # it may be longer than what is looked at


def find_assigned(text: str, lowered: str) -> Iterator[Assigned]:
    """Yield the credentials of a text that stand beside a telling name; `lowered` is the text in lower case.

    One that is within another one may be left out.
    """
    for name in NAMES if text.isascii() else (*NAMES, *_FOREIGN_NAMES):
        yield from _find_named(name, text, lowered)
    if "identified" in lowered:
        for match in _IDENTIFIED.finditer(text):
            if found := _judge("password", match, strict=False):
                yield found
    if "curl " in lowered:
        yield from _find_user_passwords(text)


def _find_named(name: str, text: str, lowered: str) -> Iterator[Assigned]:
    """Yield the credentials beside one name."""
    at, size = lowered.find(name), len(name)
    while at >= 0:
        found = _find_beside(name, text, at, at + size) if _is_separate(name, lowered, at) else None
        at += size
        if found:
            yield found
            if lowered.find(name, at, found.start) < 0:
                at = max(at, _find_next(name, text, lowered, found))
        at = lowered.find(name, at)


def _find_next(name: str, text: str, lowered: str, found: Assigned) -> int:
    """Return where to go on after a credential: what is within it matters only if it reaches further.

    That can be a name near its end, or if it was cut, the last name within it whose credential begins in it too.
    """
    inner = lowered.rfind(name, found.start, found.end) if found.cut else -1
    while inner >= 0:
        further = _find_beside(name, text, inner, inner + len(name)) if _is_separate(name, lowered, inner) else None
        if further and further.start < found.end < further.end:
            return inner
        inner = lowered.rfind(name, found.start, inner)
    return found.end - _LONGEST_BETWEEN


def _find_user_passwords(text: str) -> Iterator[Assigned]:
    """Yield the passwords that are given to curl with the name of a user, and keys in place of a name."""
    latest = 0
    for match in _USER.finditer(text):
        at = text.rfind("curl ", max(latest, match.start() - _LONGEST_AFTER_CURL), match.start() + 1)
        if at < 0 or "\n" in text[at : match.start()].replace("\\\n", ""):
            continue  # of another command
        latest = match.end()
        if found := _judge("password", match, strict=match["whole"] is not None, plain=True):
            yield found


def _is_separate(name: str, lowered: str, at: int) -> bool:
    """Return whether a name is one by itself: `pwd` not as a part of a word, `key` only as a key to something."""
    if name == "key":
        before = _KEYS.search(lowered, max(0, at - _LONGEST_BEFORE_KEY), at)
        return before is not None and before.end() == at
    if name == "token":
        return not lowered.endswith(_PUBLIC, 0, at)
    if name == "pass":
        return lowered.endswith(_PASSES, 0, at)
    if name == "pw" and lowered[at + 2 : at + 3].isalnum():
        return False
    return name not in ("pw", "pwd") or at == 0 or not lowered[at - 1].isalnum()


def _find_beside(name: str, text: str, at: int, end: int) -> Assigned | None:
    """Return the credential beside a name that ends at `end`, if there is one."""
    follows = text[end : end + 1]
    before = text[max(0, at - 60) : at]
    if follows in (" ", "=") and before.endswith("-") and _BEFORE_OPTION.search(before):
        match = _OPTION.match(text, end)
    elif match := _ASSIGNED.match(text, end):
        if _is_plain(text[at:end], match, before) or _is_data(text, match, before):
            return _judge(name, match, strict=False, plain=True)
        code = match["sign"] == "=" and " = " in match["between"] and match["quoted"] is None
        return _judge(name, match, strict=code or "\n" in match["between"])
    elif follows == ">":
        match = _ELEMENT.match(text, end)
    elif name == "password" and _BEFORE_LOGIN.search(text[max(0, at - 120) : at]):
        match = _LOGIN.match(text, end)
    else:
        match = _match_said(name, text, end, before)
        return _judge(name, match, strict=True) if match else None
    return _judge(name, match, strict=False) if match else None


def _match_said(name: str, text: str, end: int, before: str) -> re.Match[str] | None:
    """Return the match of a value that a sentence gives to a name, or that comes right after it."""
    if match := _SAID.match(text, end):
        return match
    if text[end : end + 1] in (" ", "\t") and _BEFORE_SET.search(before) and (match := _SET.match(text, end)):
        return match
    if (name in _FOREIGN_NAMES or name == "heslo") and (match := _SAID_THERE.match(text, end)):
        return match
    match = _NEXT.match(text, end)
    return match if match and _is_unmistakable(name, match) else None


def _is_plain(written: str, match: re.Match[str], before: str) -> bool:
    """Return whether a name and its value look like an environment or an address, where the value is no variable."""
    if match["between"] != "=" or match["quoted"] is not None:
        return False
    found = _BEFORE_PLAIN.search(before)
    return found is not None and (written.isupper() or found.group().startswith(("?", "&", ";")))


def _is_data(text: str, match: re.Match[str], before: str) -> bool:
    """Return whether a name and its value are an entry of JSON or a line of YAML: the value is no variable there."""
    if match["quoted"] is not None:
        return match["quote"] == '"' and match["between"].startswith('"') and bool(_BEFORE_JSON.search(before))
    is_line = text.startswith(("\n", "\r"), match.end()) or match.end() == len(text)
    return match["between"].startswith(": ") and is_line and bool(_BEFORE_YAML.search(before))


def _is_unmistakable(name: str, match: re.Match[str]) -> bool:
    """Return whether a value right after its name, with nothing between, can be nothing but a credential."""
    value = match["quoted"] or match["bare"]
    if name == "pw":
        return bool(_STRONG.search(value)) and _is_mixed(value)
    made = len(value) >= _MIN_UNSAID and _is_mixed(value) and _is_random(value)
    return made and kind_of(name) in _KINDS and "=" not in value.rstrip("=")


def _judge(name: str, match: re.Match[str], strict: bool, plain: bool = False) -> Assigned | None:
    groups = match.groupdict()
    group = next((group for group in ("quoted", "whole") if groups.get(group) is not None), "bare")
    value = str(groups[group])
    cut = len(value) in (_MOST, _MOST_SHORT)
    value = _first_parameter(value).rstrip(".,:?*") if group == "bare" else value.removesuffix("\\")
    word = kind_of(name) == "password" and (
        (plain and len(value) >= _MIN_WORD and value.isalpha() and not _is_label(value)) or _is_phrase(value)
    )
    if not (word and not is_placeholder(value)) and not is_credential(name, value, group == "quoted", strict):
        return None
    start = match.start(group)
    return Assigned(kind_of(name), start, start + len(value), cut)


def _first_parameter(value: str) -> str:
    """Return a value of an address without the parameters that follow it."""
    following = _PARAMETER.search(value) if "&" in value or "%26" in value else None
    return value[: following.start()] if following else value


def _is_label(value: str) -> bool:
    """Return whether a word is what a form says beside a field."""
    lowered = value.lower()
    return any(name in lowered for name in NAMES) or lowered in _LABELS


def _is_phrase(value: str) -> bool:
    """Return whether a value is a passphrase: three words or more, none of which speaks of passwords."""
    return (
        bool(_PHRASE.fullmatch(value))
        and _LABELS.isdisjoint(parts := re.split("[-_.]", value))
        and not any(part in NAMES or part in _PLAIN for part in parts)
    )


def name_in(key: str) -> str | None:
    """Return the telling name that a key ends with, if it does."""
    key = key[-_LONGEST_KEY:]  # a list's key is read for each of its items
    lowered = key.lower()
    names = NAMES if key.isascii() else (*NAMES, *_FOREIGN_NAMES)
    if not any(name in lowered for name in names):
        return None
    lowered = _NAME_AT_END.sub("", lowered, count=1)
    for name in names:
        if lowered.endswith(name) and _is_separate(name, lowered, len(lowered) - len(name)):
            return name
    return None


def kind_of(name: str) -> str:
    """Return what a credential of this name is called in a text without it."""
    return name if name in _KINDS else "password"


def is_credential(name: str, value: str, quoted: bool, strict: bool = False) -> bool:
    """Return whether a value beside a name of credentials is one; `strict` where words may follow too."""
    return (
        _is_generated(kind_of(name), value, quoted, strict)
        and not _REFERENCE.match(value)
        and not is_placeholder(value)
    )


def _is_generated(kind: str, value: str, quoted: bool, strict: bool) -> bool:
    if kind == "password":
        return _is_password(value, quoted, strict)
    if _TYPE_OF_KEY.search(value):
        return False
    if kind == "secret" and not strict:
        return len(value) >= _MIN_SECRET and _is_mixed(value) and not _is_named(value)
    return len(value) >= _MIN_TOKEN and _is_mixed(value) and not _is_named(value) and _is_random(value)


def is_made(value: str) -> bool:
    """Return whether a run of characters is of letters and digits, and no name or words."""
    return _is_mixed(value) and not _is_named(value)


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder."""
    if len(set(value[:_LONGEST_PLAIN])) < 4 and len(set(value)) < 4:
        return True
    lowered = value.lower()
    if lowered.strip("_-.:?") in _PLAIN:
        return True
    # Searching for each part is faster than the pattern; beyond ASCII a pattern that ignores case finds more.
    return (not value.isascii() or any(part in lowered for part in _EMPTY_PARTS)) and bool(_EMPTY.search(value))


def _is_password(value: str, quoted: bool, strict: bool) -> bool:
    if len(value) < _MIN_PASSWORD:
        return False
    strong = bool(_STRONG.search(value))
    letters = any(map(str.isalpha, value))
    digits = _has_digit(value)
    if not letters:
        return not strict and digits and (strong or quoted)
    if strict or not quoted:
        made = (digits or strong) and not _TECHNICAL.match(value)
        return made and (strong or not _is_named(value, most_digits=0))
    return (digits or strong) and not _IDENTIFIER.fullmatch(value) if "_" in value else digits or strong


def _is_named(value: str, most_digits: int = 2) -> bool:
    """Return whether a value is the name of something: words, perhaps with a number at the end."""
    if "_" in value or "." in value or "-" in value or ":" in value or "/" in value:
        return bool(_WORDS.fullmatch(value) or _IDENTIFIER.fullmatch(value))
    trailing = len(value) - len(value.rstrip("0123456789"))
    return value[: len(value) - trailing].isalpha() and trailing <= most_digits


def _is_mixed(value: str) -> bool:
    return _has_digit(value) and any(map(str.isalpha, value))


def _has_digit(value: str) -> bool:
    return bool(_DIGIT.search(value)) or (not value.isascii() and any(map(str.isdigit, value)))


def _is_random(value: str) -> bool:
    """Return whether the characters of a value are as spread as those of a key (Shannon entropy per character)."""
    counts = map(value.count, set(value))
    bits = -sum(count / len(value) * math.log2(count / len(value)) for count in counts)
    return bits >= (_HEX_BITS if all(c in "0123456789abcdefABCDEF-" for c in value) else _TEXT_BITS)
