"""Exported memories as text: whatever a memory holds comes back from JSON lines and from Markdown."""

import string
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from each import each
from memoryd.client.errors import Invalid
from memoryd.client.programs.memctl.record_text import (
    FENCE,
    format_json,
    format_markdown,
    parse_json,
    parse_markdown,
    slug,
)
from memoryd.client.protocol import Link, Record, Vote
from memoryd.client.times import exact_iso, seconds

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
weird = st.text(
    st.sampled_from("a-#: \t\n\r\x0b\x0c\x1b\x7f\x85\u2028\u2029\u202e\ufeff\uffff\U0001f9e0\"'\\{}[]&*!|>%@`ü"),
    max_size=40,
)
contents = st.one_of(
    texts, weird, st.sampled_from(["---", "---\n---\n", "\n", "x\r\n", "\ufeffx", "  x  ", "x\n\n\n", "id: 5"])
)
ids = st.text("0123456789abcdef", min_size=32, max_size=32)
times = st.floats(0.0, 253402300799.0)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | weird,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


votes = st.builds(
    Vote, by=texts, useful=st.none() | st.booleans(), note=texts, at=times, cited=st.lists(ids, max_size=2)
)


@st.composite
def links(draw: st.DrawFn, id: str) -> Link:
    origin, target = draw(st.sampled_from([(id, "a" * 32), ("b" * 32, id)]))
    return Link(origin=origin, target=target, kind=draw(texts), created_at=draw(times))


@st.composite
def records(draw: st.DrawFn) -> Record:
    id = draw(ids)
    return Record(
        id=id,
        namespace=draw(texts),
        type=draw(texts | weird),
        content=draw(contents),
        summary=draw(contents),
        metadata=draw(st.dictionaries(texts, values, max_size=4)),
        importance=draw(st.floats(0.0, 1.0)),
        source=draw(texts | st.sampled_from(["null", "true", "5", "~", "2026-01-01"])),
        tier=draw(st.sampled_from(["L1", "L2"])),
        created_at=draw(times),
        updated_at=draw(times),
        last_accessed_at=draw(st.none() | times),
        access_count=draw(st.integers(0, 2**53)),
        expires_at=draw(st.none() | times),
        pinned=draw(st.booleans()),
        superseded_by=draw(st.none() | ids),
        path=draw(st.none() | texts),
        start_line=draw(st.none() | st.integers(1, 10**6)),
        end_line=draw(st.none() | st.integers(1, 10**6)),
        contradicts=draw(st.lists(ids, max_size=2)),
        neighbours=draw(contents),
        turns=draw(st.integers(0, 5)),
        relations=draw(st.lists(links(id), max_size=2)),
        votes=draw(st.lists(votes, max_size=2)),
    )


PLAIN = Record(
    id="3f9a" + "0" * 28, namespace="acme/api", type="fact", content="A text", created_at=5.0, updated_at=6.5
)


@given(records())
@example(PLAIN)
@example(msgspec.structs.replace(PLAIN, content="x" * 1024 * 1024))
@example(msgspec.structs.replace(PLAIN, content="---\nid: 5\n---\n"))
@settings(max_examples=150)
@pytest.mark.slow
def test_every_field_comes_back_from_markdown_and_from_json(record: Record) -> None:
    assert parse_markdown(format_markdown(record)) == record
    assert parse_json(format_json(record)) == record
    assert format_json(record).count(b"\n") == 1


@pytest.mark.slow
@given(records())
@settings(max_examples=60)
def test_the_front_matter_is_yaml_with_the_same_values(record: Record) -> None:
    head = format_markdown(record).decode().split(f"{FENCE}\n", 2)[1]
    plain = yaml.safe_load(head)
    for name in ("id", "namespace", "type", "summary", "source", "superseded_by", "path", "pinned", "access_count"):
        assert plain.get(name, getattr(PLAIN, name)) == getattr(record, name), name
    assert plain["created_at"] == exact_iso(record.created_at)


def test_the_front_matter_holds_what_says_something() -> None:
    named = [
        "id",
        "namespace",
        "type",
        "importance",
        "source",
        "origin",
        "tier",
        "created_at",
        "updated_at",
        "searchable",
    ]
    silent = {
        "importance": 0.0,
        "source": "",
        "searchable": False,
        "vector": [],
        "ttl_s": 0.0,
        "key": "",
        "namespace": "",
    }
    for record in (PLAIN, msgspec.structs.replace(PLAIN, **silent)):
        data = format_markdown(record)
        head = data.decode().split(f"{FENCE}\n", 2)[1]
        assert {line.split(":")[0] for line in head.splitlines()} == {*named, *(silent if record != PLAIN else ())}
        assert parse_markdown(data) == record


@given(times)
@example(0.0)
@example(5e-324)
@example(1e-7)
@example(1_800_000_000.1234567)
@example(253402300799.0)
def test_a_time_as_text_is_the_same_time(when: float) -> None:
    text = exact_iso(when)
    assert text is not None
    assert seconds(text) == when
    assert text.endswith("Z")


@given(texts | weird)
def test_no_text_makes_a_name_that_hides_or_leads_out(text: str) -> None:
    name = slug(text)
    assert name
    assert not name.startswith((".", "-"))
    assert "/" not in name
    assert len(name.encode()) <= 60
    assert name.isprintable()


def edited(**lines: str) -> bytes:
    """Return the Markdown of a plain memory with some lines of its front matter replaced or added; empty: left out."""
    _, head, content = format_markdown(PLAIN).decode().split(f"{FENCE}\n", 2)
    written = dict(line.split(": ", 1) for line in head.splitlines()) | lines
    head = "".join(f"{name}: {value}\n" for name, value in written.items() if value)
    return f"{FENCE}\n{head}{FENCE}\n{content}".encode()


def test_a_person_may_edit_text_and_values() -> None:
    assert parse_markdown(edited(type="lesson")).type == "lesson"  # type: ignore[union-attr]
    assert parse_markdown(edited(created_at="2026-03-31")).created_at == 1774915200.0  # type: ignore[union-attr]
    assert parse_markdown(edited(pinned="true", importance="1")).pinned  # type: ignore[union-attr]
    assert parse_markdown(edited(summary='""', metadata="{}", source="", key="null")) == PLAIN
    data = format_markdown(PLAIN)
    assert parse_markdown(data.removesuffix(b"\n")) == PLAIN  # an editor that writes no last line end
    assert parse_markdown(data + b"\n").content == "A text\n"  # type: ignore[union-attr]
    assert parse_markdown(data.replace(b"---\nid", b"---\n\n# a remark\nid", 1)) == PLAIN


@each(
    "data",
    [b"", b"# A note", b"---\n---\n", b"---\ntitle: x\n---\ntext", b"---\nid: x\nno end", b"\xff\xfe", b"id: 5\n---\n"],
)
def test_other_markdown_files_are_none_of_ours(data: bytes) -> None:
    assert parse_markdown(data) is None


@each(
    ("data", "reason"),
    [
        (edited(type=""), "type"),
        (edited(importance="much"), "importance"),
        (edited(metadata="{broken"), "metadata is not JSON"),
        (edited(metadata="[1]"), "metadata"),
        (edited(access_count="1.5"), "access_count"),
        (edited(tier="L7"), "tier"),
        (edited(created_at='"yesterday"'), "not a date"),
        (edited(type="a\ntype: b"), "Line 5"),
        (edited(type="a\nnonsense"), "Line 5"),
        (edited(type="a\ncontent: b"), "Line 5"),
        (edited(type="a\ncolour: red"), "colour"),
        (edited(source='"\\x"'), "source"),
        (edited(metadata='{"n": 99999999999999999999999}'), "Not a memory"),
        (edited(contradicts="5"), "contradicts"),
        (format_markdown(PLAIN) + b"\xff", "UTF-8"),
        (edited(contradicts='[]\nrelations: [{"origin": "x"}]'), "Not a memory"),
        (edited(contradicts="[]\nrelations: [5]"), "Not a memory"),
        (edited(contradicts="[]\nrelations: 5"), "Not a memory"),
    ],
)
def test_what_cannot_be_read_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        parse_markdown(data)


@each("line", [b"nonsense", b"[1]", b"{}", b'{"id": 5}', b"\xff", b'{"id": "a", "content": "\xff"}', b'{"colour": 1}'])
def test_a_line_that_is_no_memory_is_refused(line: bytes) -> None:
    with pytest.raises(Invalid):
        parse_json(line)


def test_unprintable_text_stays_printable_in_the_front_matter() -> None:
    record: Any = msgspec.structs.replace(PLAIN, summary="a\x85\u2028\u202eb\x1b[31m\x7f")
    head = format_markdown(record).decode().split(f"{FENCE}\n", 2)[1]
    assert set(head) <= set(string.printable)
    assert head.replace("\n", "").isprintable()
