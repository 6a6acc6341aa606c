"""The relevance gate: machine noise goes, sentences of people about the same things stay."""

import time

from each import each
from memoryd.daemon.conversations import gate
from memoryd.daemon.conversations.gate import check

ERRORS = """
Error: connect ECONNREFUSED 127.0.0.1:5432
Connection refused
connection reset by peer
curl: (7) Failed to connect to localhost port 8080: Connection refused
ssh: connect to host build01 port 22: Connection timed out
requests.exceptions.ConnectionError: HTTPConnectionPool(host='x', port=80): Max retries exceeded
502 Bad Gateway
HTTP 503 Service Unavailable
API Error: 529 overloaded
API Error: 500 Internal server error
Retrying in 5 seconds...
Reconnecting... (3/5)
Request timed out.
ETIMEDOUT
fatal: unable to access 'https://github.com/x/y/': Could not resolve host: github.com
2026-01-03 10:11:12 ERROR connection refused
"""

PROGRESS = """
 45%|████▌     | 45/100 [00:10<00:12,  4.5it/s]
Downloading model.onnx: 45%
Downloading... 45%
[=====>    ] 50/100
Step 3/10
Epoch 3/10
⠙ Loading
Receiving objects:  45% (450/1000)
Building wheel for foo...
"""

TRACES = [
    'Traceback (most recent call last):\n  File "/app/main.py", line 10, in <module>\n    main()\n'
    '  File "/app/main.py", line 5, in main\n    raise ValueError("bad")\n    ^^^^^^^^^\nValueError: bad',
    "TypeError: Cannot read properties of undefined (reading 'x')\n    at Object.<anonymous> (/app/index.js:3:5)\n"
    "    at Module._compile (node:internal/modules/cjs/loader:1105:14)",
    'Exception in thread "main" java.lang.NullPointerException: x\n\tat com.acme.Foo.bar(Foo.java:12)\n\t... 3 more',
    "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\n"
    "main.main()\n\t/tmp/x.go:8 +0x1d\nexit status 2",
]

PEOPLE = """
The API returned connection refused because the firewall blocks port 5432
We fixed the connection reset by raising the keepalive to 60 s
Why do I get ECONNREFUSED on port 5432?
The root cause of the 502 was the proxy timeout
Connection refused means that no process listens on the port
ValueError is raised when the date is empty
ValueError: invalid literal for int() with base 10: 'x'
Use exit status 2 for wrong usage
Downloading the model takes 45 seconds
Step 3 of the release is to tag the commit
50% of the users are on the old version
The build is 45% faster with ccache
Retry in 5 seconds, then give up after three attempts
The panic: everybody forgot the deadline
Error: the user must be asked before deleting
We processed 45/100 tickets
The traceback points at main.py line 10
Connection pooling is limited to 20
Service unavailable on Sundays from 2 to 4 am
I get a connection error when I run the tests
Never retry on 429; back off for a minute
Internal server error pages must show the request id
Our SLA: 99.9% of calls
Building a house
Loading docks are closed on Mondays...
45% of revenue comes from Germany
100% agree with the plan to use Valkey
80%: the target coverage
Timeout errors go to the on-call engineer
git: the main branch is protected
ssh: connect with the deploy key only
500 is the limit
Call foo() before bar()
KeyError: we catch it in the loader and return None
Processing of invoices happens at night, 3/4 of them automatically
Use Valkey
Deploy Friday
はい、わかりました
使用Valkey
"""


def lines(text: str) -> list[str]:
    return text.strip("\n").split("\n")


@each("text", lines(ERRORS))
def test_a_printed_connection_error_is_noise(text: str) -> None:
    assert check(text) == gate.CONNECTION_ERROR


@each("text", lines(PROGRESS))
def test_printed_progress_is_noise(text: str) -> None:
    assert check(text) == gate.PROGRESS


@each("text", TRACES)
def test_a_bare_stack_trace_is_noise(text: str) -> None:
    assert check(text) == gate.STACK_TRACE


@each("text", lines(PEOPLE))
def test_what_people_say_stays(text: str) -> None:
    assert check(text) is None


@each("text", [*lines(ERRORS), *lines(PROGRESS), *TRACES])
@each("words", ["Why do I get this?\n{}", "{}\nThis began after the upgrade to version 3."])
def test_noise_that_somebody_comments_on_stays(text: str, words: str) -> None:
    assert check(words.format(text)) is None


@each(
    ("text", "reason"),
    [
        *((text, gate.TOO_SHORT) for text in ("", "?", "👍", "ok", "no", "hm", "ok?")),
        *((text, gate.STOP_WORDS_ONLY) for text in ("okay", "it is")),
        *((text, None) for text in ("42", "v2", "好", "Is it?")),
    ],
)
def test_the_shortest_texts_are_refused_when_they_tell_nothing(text: str, reason: str | None) -> None:
    assert check(text) == reason


@each(
    ("text", "asks"),
    [
        ("Is it done?", True),
        ('He asked "why?"', True),
        ("完了しましたか。", True),
        ("真的吗", True),
        ("Why? Because.", False),
    ],
)
def test_a_question_is_known_by_its_end(text: str, asks: bool) -> None:
    assert gate.ends_with_question(text) is asks
    assert gate.is_short_answer(text) is not asks


@each("text", ["yes please", "I will", "that is it", "thanks", "go now", "Why he did it."])
def test_stop_words_alone_tell_nothing(text: str) -> None:
    assert check(text) == gate.STOP_WORDS_ONLY


@each(
    "piece",
    ["a", "at ", "Error: ", "x.", "~", "(0x1", "error ", "1%", "Downloading a ", "[=", "\n at (", "connection "],
)
def test_no_text_makes_the_gate_think_for_long(piece: str) -> None:
    for size in (gate.MAX_LINE_CHARS, gate.READ_CHARS):
        began = time.process_time()
        check(piece * (size // len(piece)))
        assert time.process_time() - began < 1.0, "this takes a millisecond"
