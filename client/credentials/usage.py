"""Credentials that their place gives away: the option of a command, a line of a file of passwords, a cookie, a login.

Rows as in `formats`: the group `secret` is what is taken out. Each pattern begins with its anchor, or with a bounded
part before it, and looks at one line.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from memoryd.client.patterns import compile_late

_REST_OF_COMMAND = r"\b[^\n|;&]{0,200}?\s"
_ARGUMENT = r"(?P<quote>['\"]?)(?P<secret>[^\s'\"$<{%&|\[(-][^\s'\"]{3,100})(?P=quote)(?=[\s;|&)`'\"]|$)"
_MADE = r"(?=[^\s\d]{0,60}\d)(?=[\W\d_]{0,60}[A-Za-z])"  # a letter and a digit


class Use(NamedTuple):
    """One place: what is found there, what every one of them contains, the pattern, and where that is documented."""

    name: str
    anchors: tuple[str, ...]
    pattern: str
    source: str
    flags: int = 0
    free: bool = False  # it begins before its anchor


USES: tuple[Use, ...] = (
    Use(
        "password",
        ("mysql", "mariadb"),
        rf"(?:mysql|mariadb)[\w-]{{0,12}}{_REST_OF_COMMAND}-p{_ARGUMENT}",
        "MySQL manual: end-user guidelines for password security",
    ),
    Use("password", ("sshpass",), rf"sshpass\s{{1,4}}-p\s{{0,4}}{_ARGUMENT}", "sshpass(1)"),
    Use(
        "password",
        ("redis-cli",),
        rf"redis-cli{_REST_OF_COMMAND}(?:-a|--pass)\s{{1,4}}{_ARGUMENT}",
        "Redis docs: redis-cli",
    ),
    Use(
        "password",
        ("docker login", "podman login"),
        rf"(?:docker|podman) login{_REST_OF_COMMAND}(?:-p|--password)[ =]{{1,4}}{_ARGUMENT}",
        "Docker docs: docker login",
    ),
    Use(
        "secret",
        ("secret",),
        r"secrets?(?:manager)?[ \t]{1,4}(?:(?:versions|variable)[ \t]{1,4})?"
        r"(?:set|create|put|add|update|generic|new|create-secret|put-secret-value|update-secret)"
        rf"{_REST_OF_COMMAND}(?:(?:--(?:body|value|secret-string|secret-value)|-b|-v)[ =]{{1,3}}"
        rf"|--from-literal[ =][\w.-]{{1,80}}=){_ARGUMENT}",
        "manuals of gh, aws, az and kubectl: secrets",
        re.IGNORECASE,
    ),
    Use(
        "secret",
        (" secret",),
        rf"(?:echo|printf)[ \t]{{1,4}}(?:-\w{{1,2}}[ \t]{{1,4}}){{0,2}}{_ARGUMENT}[ \t]{{0,4}}\|"
        r"[ \t]{0,4}[\w./-]{1,40} secrets?[ \t]{1,4}(?:set|create|put|add|update|versions add)\b",
        "manuals of docker, gh, gcloud and wrangler: secrets from standard input",
        free=True,
    ),
    Use("password", ("ldap",), rf"ldap[a-z]{{3,9}}{_REST_OF_COMMAND}-w\s{{1,4}}{_ARGUMENT}", "ldapsearch(1)"),
    Use(
        "password",
        ("mosquitto_",),
        rf"mosquitto_(?:pub|sub|rr){_REST_OF_COMMAND}(?:-P|--pw)\s{{1,4}}{_ARGUMENT}",
        "mosquitto_pub(1)",
    ),
    Use(
        "password",
        ("net use",),
        r"net use[ \t]{1,4}(?:[\w*]:?[ \t]{1,4})?\\\\\S{1,200}[ \t]{1,4}(?P<secret>[^\s/*<%$\[][^\s]{3,100})(?=\s|$)",
        "Microsoft Learn: net use",
        re.IGNORECASE,
    ),
    Use("password", ("openssl",), rf"openssl{_REST_OF_COMMAND}-k\s{{1,4}}{_ARGUMENT}", "openssl-enc(1)"),
    Use("password", (" pass:",), r" pass:(?P<secret>[^\s'\"$<{%\[][^\s'\"]{3,100})", "openssl-passphrase-options(1)"),
    Use(
        "password",
        (":5432:", ":5433:", ":6432:", ":*:"),
        r"^[ \t]{0,8}[\w.*/-]{1,100}:(?:\d{2,5}|\*):[\w*-]{1,63}:[\w.*@-]{1,63}:(?P<secret>[^\s:]{4,100})[ \t]*$",
        "PostgreSQL manual: the password file",
        re.MULTILINE,
        free=True,
    ),
    Use(
        "password",
        ('"auth"',),
        r'"auth"\s{0,4}:\s{0,4}"(?P<secret>(?=[^"A-Z]{0,400}[A-Z])(?:[A-Za-z0-9+/]{4}){3,100}'
        r'(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)"',
        "Docker docs: config.json",
    ),
    Use(
        "token",
        ("authorization",),
        r"authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?!AWS4|sha\d+ |basic\b|bearer\b|token\b)"
        r"(?P<secret>(?=[^\s\d]{0,60}\d)[\w~@.+/=-]{16,600})(?=[\"'\s]|$)",
        "RFC 9110 section 11.6.2",
        re.IGNORECASE,
    ),
    Use(
        "token",
        ("-h ", "-h=", "--header"),
        r"(?:-h|--header)[ =]{1,3}[\"'][\w-]{0,30}(?:token|key|secret):\s{0,3}"
        r"(?P<secret>(?=[^\s\d\"']{0,60}\d)[\w=~@.+/-]{8,600})[\"']",
        "curl(1)",
        re.IGNORECASE,
    ),
    Use(
        "session cookie",
        ("cookie",),
        r"cookie[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?(?:[\w.-]{1,60}=[^;\s]{0,200}+;[ \t]{0,3}){0,8}?"
        r"[\w.-]{0,40}?(?:sess|sessid|session|session[_-]?id|sid|auth|token|remember_me)="
        r"(?P<secret>(?=[^\s\d]{0,60}\d)[\w%+/=.~-]{16,600})",
        "RFC 6265",
        re.IGNORECASE,
    ),
    Use(
        "session cookie",
        ("phpsessid=", "sessionid=", "_session=", "connect.sid="),
        r"(?:SESSIONID|PHPSESSID|_session|connect\.sid)=(?P<secret>(?=[^\s\d]{0,60}\d)[\w.!%+=-]{16,600})",
        "PHP manual: sessions; Jakarta Servlet specification; docs of Rails, Laravel, Django, Express",
        re.IGNORECASE,
    ),
    Use(
        "password hash",
        ("$1$", "$5$", "$6$", "$y$", "$7$", "$apr1$", "$2a$", "$2b$", "$2y$", "$argon2"),
        r"\$(?:[1567y]|apr1|2[aby]|argon2(?:id|i|d))\$[./A-Za-z0-9$=,+-]{20,400}",
        "crypt(5), Apache docs: password formats",
    ),
    Use("password hash", ("{SHA", "{SSHA"), r"\{S?SHA(?:256|512)?\}[A-Za-z0-9+/]{27,200}={0,2}", "RFC 2307"),
    Use(
        "password",
        ("log in", "login", "log on", "logon", "logged in", "logged on", "sign in", "signed in"),
        r"(?:log|sign)(?:ged|ed)? ?(?:in|on)(?: as| with| using| via|:)?\s{1,3}[\w.@+-]{2,80}"
        rf"(?:\s{{0,3}}/\s{{0,3}}|\s{{1,3}}with\s{{1,3}}){_MADE}(?P<secret>[^\s/|,]{{7,80}})(?=[\s.,;]|$)",
        "how people write a login",
        re.IGNORECASE,
    ),
    Use(
        "password",
        ("passphrase",),
        r"passphrase\s{0,2}[:=]\s{1,3}(?P<secret>[a-z]{3,12}(?: [a-z]{3,12}){3,11})(?=[\"'.]?[ \t]*$)",
        "diceware",
        re.MULTILINE,
    ),
    Use(
        "password",
        ("credentials", "creds"),
        r"cred(?:ential)?s(?: are| is)?\s{0,2}[: =]\s{0,2}[\w.@+-]{2,80}\s{0,2}[:/]\s{0,2}"
        rf"{_MADE}(?P<secret>[^\s/|,\"']{{7,80}})(?=[\s.,;\"']|$)",
        "how people write a login",
        re.IGNORECASE,
    ),
)

_KIND = compile_late(r"^[ \t]{0,8}kind:[ \t]{0,4}[\"']?secret\b", re.MULTILINE)
_DATA = compile_late(r"^[ \t]{0,8}data:[ \t]*\r?\n", re.MULTILINE)
_KEY = r"[\w.-]{1,80}+:[ \t]{0,40}+"
_ENTRY = compile_late(
    rf"[ \t]{{1,40}}+(?:#[^\n]{{0,400}}+|{_KEY}[|>]?[-+]?|(?:{_KEY})?[\"']?"
    r"(?P<secret>(?=[^\s\"'=]{0,9000}[A-Z0-9])[A-Za-z0-9+/]{10,9000}+={0,2})[\"']?)[ \t]{0,40}+(?:\r?\n|\Z)"
)


def find_manifest(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Yield where the values of Kubernetes Secrets are: the entries below `data:` in a manifest of that kind."""
    if "data:" not in lowered or not _KIND.search(lowered):
        return
    for match in _DATA.finditer(text):
        at = match.end()
        while entry := _ENTRY.match(text, at):
            at = entry.end()
            if entry["secret"]:
                yield entry.span("secret")
