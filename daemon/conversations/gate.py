"""The relevance gate: decide by its text alone whether a turn is worth keeping.

It prefers keeping noise to losing content: what people write about an error is kept, the printed error is refused, and
a turn is noise only if every line is. A turn of filler words ("ok") is refused unless it answers a question, which only
the caller knows (`QUIET`). Pure functions without a model.
"""

import re
from typing import NamedTuple

from memoryd.client.patterns import compile_late
from memoryd.daemon.language.sentences import FILLERS, ends_with_question, split_words
from memoryd.daemon.store.stopwords import STOP_WORDS

READ_CHARS = 20_000  # a longer text is kept unread: it may be needed again
MAX_LINE_CHARS = 500  # printed noise has shorter lines, and the patterns are slow on longer ones

MIN_CHARACTERS = 4  # a turn of filler words with fewer letters and digits is reported as too short
TOO_SHORT = "too short"
STOP_WORDS_ONLY = "only stop words"
CONNECTION_ERROR = "connection error"
STACK_TRACE = "stack trace"
PROGRESS = "progress output"
QUIET = (TOO_SHORT, STOP_WORDS_ONLY)  # reasons that do not apply to the answer to a question
ANSWER_CHARS = 120  # the length of a short answer

_SILENT = STOP_WORDS | FILLERS


class Noise(NamedTuple):
    """A kind of machine output, and a pattern for its lines.

    Repetitions that could backtrack into what follows are possessive, so that matching takes linear time.
    """

    reason: str
    lines: re.Pattern[str]


def _lines(reason: str, *patterns: str) -> Noise:
    return Noise(reason, compile_late("|".join(f"(?:{pattern})" for pattern in patterns)))


_CODES = "ECONNREFUSED|ECONNRESET|ECONNABORTED|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|EPIPE"
_FAILURES = (
    r"connection (?:was |has been )?(?:refused|reset(?: by peer)?|timed ?out|aborted"
    r"|closed(?: by (?:remote )?(?:host|peer))?|lost|error)|connect(?:ion)? (?:attempt )?time(?:d ?out|out)"
    r"|network is unreachable|no route to host|host is down|temporary failure in name resolution"
    r"|name or service not known|could not resolve host(?:name)?|broken pipe|operation timed out|request timed out"
    r"|read timed out|socket hang up|(?:bad gateway|gateway time-?out|service unavailable|internal server error"
    r"|too many requests)"
)
_LOG = (
    r"(?:\[?\d{4}-\d\d-\d\d[T ][\d:.,]++(?:Z|[+-]\d\d:?\d\d)?\]?\s*+)?"
    r"(?:\[?(?:ERROR|WARN(?:ING)?|FATAL|CRITICAL|INFO|DEBUG)\]?:?\s*+)?"
)
_ADDRESS = r"[\w.:/\[\]()-]"
_EXCEPTION = r"(?:[A-Za-z_][\w$]*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit|Fault|Timeout)"

NOISE: tuple[Noise, ...] = (
    # `Error: connect ECONNREFUSED 127.0.0.1:5432`, `curl: (7) Failed to connect …`, `HTTP 502 Bad Gateway`.
    _lines(
        CONNECTION_ERROR,
        rf"{_LOG}(?:(?:Uncaught |Unhandled )?[Ee]rror: |npm ERR! |fatal: )?(?:\w+ )?(?:{_CODES})\b(?:[ ,:-]++"
        rf"(?:(?={_ADDRESS}*[\d.:/]){_ADDRESS}++|(?:connect|read|write|getaddrinfo|syscall|errno)(?!{_ADDRESS})))*",
        rf"{_LOG}(?i:(?:error|fatal|warning|ssh|curl|wget|psql|redis|git|api error|http error|network error)?\s?[:-]?"
        rf"\s?(?:the )?(?:{_FAILURES}))[.!]?(?: \(?(?:\d{{3}}|[\w.]+:\d+|errno \d+)\)?)?",
        r"(?:ssh|curl|wget|psql|git|fatal|pip|npm ERR!|docker|kubectl|ping|nc|telnet)\b[^:]{0,40}: (?:\(\d+\) )?"
        rf"(?!.*\?)(?is:.*?(?:{_FAILURES}|failed to connect|unable to (?:connect|access|resolve)|couldn't connect).*)",
        r"(?:API |HTTP |Server )?(?:Error:? )?(?:HTTP(?:/\d(?:\.\d)?)? )?(?:Error )?(?:408|429|500|502|503|504|529)"
        r"[: -]*(?i:bad gateway|gateway time-?out|service unavailable|internal server error|too many requests"
        r"|request timeout|overloaded|error)?[.!]?",
        r"(?i:retrying|reconnecting|trying again|retry)(?: attempt)?"
        r"(?: (?:in|after) \d[\w.]*+(?: ?(?:sec(?:ond)?s?|ms|s))?| \(?\d+(?:/| of )\d+\)?|…|\.{2,}+)++[^a-z]*",
        r"(?>(?:\w+\.)+(?:ConnectionError|ConnectTimeout|ReadTimeout|ConnectError|MaxRetryError|NewConnectionError)\b).*",
    ),
    # Frames of Python, Java, JavaScript, Go, Rust, and the line of the exception itself.
    _lines(
        STACK_TRACE,
        r"Traceback \(most recent call last\):",
        r"(?:[|+ ]*)File \"[^\"]+\", line \d+(?:, in .+)?",
        r"During handling of the above exception, another exception occurred:",
        r"The above exception was the direct cause of the following exception:",
        r"at (?:async |new )?[\w$.<>\[\] /@-]+ ?\(.*\)",
        r"at (?:file://|node:|/|[A-Za-z]:\\|https?://)\S+:\d+(?::\d+)?\)?",
        r"(?:Caused by|Suppressed): .+|\.\.\. \d+ (?:more|common frames omitted)",
        r"(?:Exception in thread \"[^\"]+\" |Uncaught |Unhandled )" + _EXCEPTION + r"\b.*",
        r"goroutine \d+ \[.+\]:|panic: .+|exit status \d+|\t?/\S+\.go:\d+(?: \+0x[0-9a-f]+)?|"
        r"[\w./()*]+\((?:0x[0-9a-f]+,? ?|\.\.\.)*\)",
        r"(?>thread '.+?' panicked at ).+|stack backtrace:|note: run with `RUST_BACKTRACE=.*|"
        r"\d+: +(?:0x[0-9a-f]+ - )?(?>[\w:<>{}]+?::)[\w:<>{}]+",
    ),
    # Bars, percentages, counters, spinners, downloads.
    _lines(
        PROGRESS,
        r"[^\w]*\d{1,3}(?:\.\d+)? ?%[^\w]*(?:\|.*|\[.*|of \d.*|ETA.*|complete[d.]*|done[.]*)?",
        r"(?:[\w./:@-]+ ){0,5}[\w./:@-]*[a-zA-Z.:_-] *\d{1,3}(?:\.\d+)? ?% ?[|\[(].*",
        r"(?i:downloading|uploading|installing|collecting|fetching|extracting|unpacking|building|compiling|linking|loading"
        r"|pulling|pushing|receiving objects|resolving deltas|counting objects|compressing objects|writing objects"
        r"|progress|processing|verifying|preparing)(?: [^\s?!,]+){0,3}?:?(?: ?(?:\.{3}|…))?"
        r"(?: *\d{1,3}(?:\.\d+)? ?%(?: [|\[(].*)?|\.{3}|…| \(?\d+ ?/ ?\d+\)?)",
        r"[\[|][=#>█▓▒░▏▎▍▌▋▊▉\-. ]{3,}[\]|].*",
        r"[█▓▒░▏▎▍▌▋▊▉⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏].*",
        r"(?i:step|epoch|batch|iteration|iter)\s*+:?\s*+\[?\d+\s*(?:/|of)\s*\d+\]?\b.*",
        r"[.·•*=_-]{4,}",
        r"\(?\d+ ?(?:/|of) ?\d+\)?[.…]*",
    ),
)


# Lines that belong to a trace but may be a person's words when they stand alone: the exception, markers below source.
_COMPANION = compile_late(rf"{_LOG}{_EXCEPTION}(?:: .*)?|[~^ ]+")


def check(text: str) -> str | None:
    """Return why a turn is not worth keeping, None if it is."""
    if len(text) > READ_CHARS:
        return None
    if not any(character.isalnum() for character in text):
        return _classify_noise(text) or TOO_SHORT
    if len(text) < 200 and (FILLERS if ends_with_question(text) else _SILENT).issuperset(split_words(text)):
        return TOO_SHORT if sum(map(str.isalnum, text)) < MIN_CHARACTERS else STOP_WORDS_ONLY
    return _classify_noise(text)


def _classify_noise(text: str) -> str | None:
    """Return the kind of machine output that a text consists of, the most frequent if there are several."""
    lines = [stripped for line in text.replace("\r", "\n").split("\n") if (stripped := line.strip())]
    counts: dict[str, int] = {}
    previous = ""
    for line in lines:
        if len(line) > MAX_LINE_CHARS:
            return None
        kind = next((noise.reason for noise in NOISE if noise.lines.fullmatch(line)), None)
        if kind is not None:
            counts[kind] = counts.get(kind, 0) + 1
        elif not (_COMPANION.fullmatch(line) or previous.lstrip("| ").startswith('File "')):
            return None  # the line after a Python frame is its source line, whatever it says
        previous = line
    return max(counts, key=counts.__getitem__) if counts else None


def is_short_answer(text: str) -> bool:
    """Return whether a turn that follows a question is a short answer, which means little without the question."""
    return len(text) <= ANSWER_CHARS and not ends_with_question(text)
