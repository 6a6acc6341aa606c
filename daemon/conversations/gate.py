"""The relevance gate: why a turn is not taken into L0, decided by its text alone.

Precise rather than complete: what people say about an error stays, what a machine printed of it is refused. A turn is
noise only when every line of it is. Words of silence say nothing unless they answer a question, which the caller knows
(`QUIET`). Pure functions without a model; called for each turn that is observed.
"""

import re
from typing import NamedTuple

from memoryd.client.patterns import compile_late
from memoryd.daemon.language.sentences import FILLERS, ends_with_question
from memoryd.daemon.store.stopwords import STOP_WORDS

READ_CHARS = 20_000  # a longer text is no noise: somebody may have to read it again
MAX_LINE_CHARS = 500  # printed noise has shorter lines, and patterns take their time on longer ones

MIN_CHARACTERS = 4  # letters and figures of words of silence that are more than too short
TOO_SHORT = "too short"
STOP_WORDS_ONLY = "only stop words"
CONNECTION_ERROR = "connection error"
STACK_TRACE = "stack trace"
PROGRESS = "progress output"
QUIET = (TOO_SHORT, STOP_WORDS_ONLY)  # reasons that do not hold for an answer
ANSWER_CHARS = 120  # of a short answer at most

_WORD = compile_late(r"[^\W_]+(?:['’][^\W_]+)?")
_SILENT = STOP_WORDS | FILLERS


class Noise(NamedTuple):
    """A kind of machine output and how its lines look.

    Runs of characters that what follows may take as well are possessive: a line is read in linear time.
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


# What comes with a trace but alone may be said by a person: the exception's own line, the marks below a source line.
_COMPANION = compile_late(rf"{_LOG}{_EXCEPTION}(?:: .*)?|[~^ ]+")


def check(text: str) -> str | None:
    """Return why a turn is not worth keeping, None when it may be."""
    if len(text) > READ_CHARS:
        return None
    if not any(character.isalnum() for character in text):
        return _classify_noise(text) or TOO_SHORT
    if len(text) < 200 and (FILLERS if ends_with_question(text) else _SILENT).issuperset(_split_words(text)):
        return TOO_SHORT if sum(map(str.isalnum, text)) < MIN_CHARACTERS else STOP_WORDS_ONLY
    return _classify_noise(text)


def _classify_noise(text: str) -> str | None:
    """Return which kind of machine output all lines are; of several kinds the one with most lines."""
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
            return None  # after a frame of Python comes its source line
        previous = line
    return max(counts, key=counts.__getitem__) if counts else None


def _split_words(text: str) -> list[str]:
    return [word.casefold().replace("’", "'") for word in _WORD.findall(text)]


def is_short_answer(text: str) -> bool:
    """Return whether a turn that follows a question is its answer and means little without it."""
    return len(text) <= ANSWER_CHARS and not ends_with_question(text)
