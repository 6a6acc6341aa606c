"""Names that say that a value is a credential: `password`, `clientSecret`, `prod-password`, `MY_SECRET_KEY_2`."""

import re
from typing import Literal

from memoryd.client.credentials.invisible import strip_invisible
from memoryd.client.patterns import compile_late

NAMES = (
    *("password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "mot de passe", "contraseña", "pwd"),
    *("pass", "secret", "credential", "token", "key"),
    *("pw", "senha", "wachtwoord", "parola", "palavra-passe", "adgangskode", "salasana", "contrasena", "heslo"),
)
FOREIGN_NAMES = (
    *("密码", "密碼", "口令", "パスワード", "비밀번호", "암호", "пароль", "пароля", "hasło", "lösenord", "şifre"),
    *("jelszó", "κωδικός", "mật khẩu", "รหัสผ่าน", "كلمة المرور", "סיסמה", "पासवर्ड"),
)
KINDS = ("secret", "credential", "token", "key")
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
_LONGEST_KEY = 200  # characters of its end
_REST_OF_KEY = compile_late(r"s?(?:[ _-]?(?:access[ _-]?)?key)?(?P<suffix>[a-z0-9_. -]{0,40})", re.IGNORECASE)
_PARTS = compile_late(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
# What a name says after `password` of which one is meant, or how it is written.
_WHICH = frozenset(
    "s v value string text plain clear b base prod production staging stage dev development test testing qa live local"
    " old new current previous primary secondary main master backup default root admin db database app api web key"
    " one two first second last".split()
)
# What it says where it is about a password, and is none.
_ABOUT = frozenset(
    "length len min max minimum maximum count counts number limit size policy hash hashes hashed hasher digest checksum"
    " sha md salt file files path dir folder url uri link href id ids name names type types kind field fields label"
    " labels column columns header headers param params parameter prompt hint help message msg error errors reset"
    " change changed forgot expiry expires expired expiration expire ttl age lifetime timeout interval rotation rotated"
    " at date time on created updated policy rules rule pattern regex validator validators validation strength score"
    " form input page view template route endpoint provider service manager generator store vault backend class cls"
    " func function fn callback handler handlers encoder encoding encoded algorithm algo alg bits cost rounds"
    " iterations ref reference arn location region source env var variable lookup cmd command program is has can"
    " enabled enable disabled required optional allowed mode status state index idx position pos start end offset per"
    " budget usage used cache fingerprint prefix suffix format scope scopes owner issuer audience user username login"
    " email account less free protected spec schema settings config options".split()
)
_USER_KEY = compile_late(
    r"(?:^|[\s{,;/(\"'&?])(?:user(?:[_-]?name)?|login|e?mail|account|uid)[\"']?\s{0,4}[:=]{1,2}\s{0,4}[\"']?[^\s\"',}=]"
)
_USER_NAME = compile_late(r"(?:user(?:[ _-]?name)?|login|e-?mail|account|uid)", re.IGNORECASE)
_BEGIN_OF_ENTRY = compile_late(r"(?:^|[\n{,;/(&?\[]|- )[ \t]{0,80}[\"']?$")
_SIGN_OF_ENTRY = compile_late(r"[\"']?[ \t]{0,4}[:=]")
_NEAR_USER = 200  # characters between `pass` and the user that it is of


def kind_of(name: str) -> str:
    """Return what a credential of this name is called in a text without it."""
    return name if name in KINDS else "password"


def is_user(name: str) -> bool:
    """Return whether a name is that of a user's name: what is called `pass` beside it is a password."""
    return bool(_USER_NAME.fullmatch(name))


def is_separate(name: str, lowered: str, at: int) -> bool:
    """Return whether a name is one by itself: `pwd` not as a part of a word, `key` only as a key to something."""
    if name == "key":
        before = _KEYS.search(lowered, max(0, at - _LONGEST_BEFORE_KEY), at)
        return before is not None and before.end() == at
    if name == "token":
        return not lowered.endswith(_PUBLIC, 0, at)
    if name == "pass":
        return lowered.endswith(_PASSES, 0, at) or _is_beside_user(lowered, at, at + len(name))
    if name == "pw" and lowered[at + 2 : at + 3].isalnum():
        return False
    return name not in ("pw", "pwd") or at == 0 or not lowered[at - 1].isalnum()


def _is_beside_user(lowered: str, start: int, end: int) -> bool:
    """Return whether an entry of a file of settings that is called `pass` is near one for a user."""
    if not _SIGN_OF_ENTRY.match(lowered, end) or not _BEGIN_OF_ENTRY.search(lowered[max(0, start - 90) : start]):
        return False
    near = lowered[max(0, start - _NEAR_USER) : end + _NEAR_USER]
    return bool(_USER_KEY.search(near))


def judge_suffix(written: str, suffix: str) -> Literal["same", "other", None]:
    """Return whether a longer name is the same, another that may be one, or none: `passwordProd`, `tokenizer`."""
    if not suffix.strip("_.-"):
        return "same"
    parts = [part.lower() for part in _PARTS.findall(suffix)]
    if not _ABOUT.isdisjoint(parts):
        return None
    if all(part.isdigit() or part in _WHICH for part in parts):
        return "same"
    apart = suffix[0] in "_.- 0123456789" or (suffix[0].isupper() and not written.isupper())
    return "other" if apart else None


def name_in(key: str) -> str | None:
    """Return the telling name of a key, if it has one."""
    key = strip_invisible(key)[-_LONGEST_KEY:]  # a list's key is read for each of its items
    lowered = key.lower()
    for name in NAMES if key.isascii() else (*NAMES, *FOREIGN_NAMES):
        at = lowered.rfind(name)
        if at < 0 or not is_separate(name, lowered, at):
            continue
        rest = _REST_OF_KEY.fullmatch(key, at + len(name))
        if rest and judge_suffix(key[at : at + len(name)], rest["suffix"]) == "same":
            return name
    return None
