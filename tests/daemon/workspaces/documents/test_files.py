"""Reading one file: what stands in it, and what is never read."""

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each import each
from memoryd.client.errors import Invalid, NotFound
from memoryd.daemon.workspaces.documents.document import Document, Limits
from memoryd.daemon.workspaces.documents.files import build_document as from_bytes
from memoryd.daemon.workspaces.documents.files import read


def document(root: Path, data: bytes, limits: Limits = Limits()) -> Document:  # noqa: B008
    (root / "a.md").write_bytes(data)
    found = read(root, "a.md", limits)
    assert found is not None
    return found


def test_a_file_is_its_hash_state_front_matter_and_chunks(tmp_path: Path) -> None:
    data = b"---\ntype: decision\n---\n# Cache\n\nWe use Valkey.\n"
    found = document(tmp_path, data)
    state = (tmp_path / "a.md").stat()
    assert (found.sha256, found.size, found.mtime_ns) == (sha256(data).digest(), len(data), state.st_mtime_ns)
    assert (found.front.type, found.problem) == ("decision", None)
    assert [(one.content, one.start_line, one.end_line) for one in found.chunks] == [
        ("# Cache\n\nWe use Valkey.", 4, 6)
    ]


def test_a_byte_order_mark_and_windows_line_ends_are_not_content(tmp_path: Path) -> None:
    found = document(tmp_path, b"\xef\xbb\xbf---\r\ntype: x\r\n---\r\n# A\r\nb\r\n")
    assert (found.front.type, [one.content for one in found.chunks]) == ("x", ["# A\nb"])
    assert document(tmp_path, b"\xef\xbb\xbf# A\n").chunks[0].heading == "A"


def test_bytes_that_are_not_utf8_are_reported_with_their_line_and_the_rest_is_read(tmp_path: Path) -> None:
    found = document(tmp_path, b"one\ntwo caf\xe9\nthree\n")
    assert found.problem == "Line 2: byte 0xe9 is not UTF-8; it is read as \N{REPLACEMENT CHARACTER}."
    assert found.chunks[0].content == "one\ntwo caf\N{REPLACEMENT CHARACTER}\nthree"


def test_nul_bytes_are_reported_and_replaced(tmp_path: Path) -> None:
    found = document(tmp_path, b"one\n\n\0two\n")
    assert "Line 3" in str(found.problem)
    assert found.chunks[0].content == "one\n\n\N{REPLACEMENT CHARACTER}two"


def test_utf16_is_reported(tmp_path: Path) -> None:
    found = document(tmp_path, "text".encode("utf-16"))
    assert (found.chunks, found.problem) == ([], "The file is UTF-16; only UTF-8 is read.")


def test_a_file_over_the_limit_is_not_read_and_says_so(tmp_path: Path) -> None:
    assert document(tmp_path, b"x" * 100, Limits(max_bytes=100)).problem is None
    found = document(tmp_path, b"x" * 101, Limits(max_bytes=100))
    assert (found.chunks, found.size) == ([], 101)
    assert "more than 100 bytes" in str(found.problem)


def test_a_file_that_is_gone_is_none_and_a_root_that_is_gone_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert read(tmp_path, "none.md") is None
    assert read(tmp_path, "none/a.md") is None
    assert read(tmp_path, "file/a.md") is None
    with pytest.raises(NotFound, match="does not exist"):
        read(tmp_path / "none", "a.md")


@each("path", ["", "/etc/passwd", "../a.md", "a/../../b.md", "./a.md", "a//b.md", "a\0.md"])
def test_a_path_that_does_not_lead_down_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(Invalid, match="not a path below"):
        read(tmp_path, path)


def test_no_link_is_followed_not_even_one_that_stays_inside(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "in").mkdir(parents=True)
    (tmp_path / "secret.md").write_text("secret")
    (root / "in/a.md").write_text("inside")
    (root / "out.md").symlink_to(tmp_path / "secret.md")
    (root / "same.md").symlink_to("in/a.md")
    (root / "folder").symlink_to(tmp_path)
    (root / "loop").symlink_to("loop")
    for path in ("out.md", "same.md", "folder/secret.md", "loop", "loop/a.md"):
        found = read(root, path)
        assert found is not None, path
        assert (found.chunks, found.sha256) == ([], b"")
        assert "symbolic link" in str(found.problem)


@pytest.mark.parametrize("swapped", ["memory/a.md", "memory"])
def test_a_link_put_in_place_between_check_and_reading_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder, text in ((root / "memory", "mine"), (outside, "secret")):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(text)
    real = os.lstat

    def swapping(*given: Any, **named: Any) -> os.stat_result:
        state = real(*given, **named)
        if not (root / swapped).is_symlink():
            (root / swapped).rename(tmp_path / "away")
            (root / swapped).symlink_to(outside if swapped == "memory" else outside / "a.md")
        return state

    monkeypatch.setattr(os, "lstat", swapping)
    found = read(root, "memory/a.md")
    assert found is not None
    assert "secret" not in str(found)
    assert found.problem if swapped == "memory/a.md" else found.chunks[0].content == "mine"


def test_pipes_and_folders_are_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "folder.md").mkdir()
    for path in ("pipe.md", "folder.md"):
        found = read(tmp_path, path)
        assert found is not None
        assert "not a regular file" in str(found.problem)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x")
    (tmp_path / "a.md").chmod(0)
    found = read(tmp_path, "a.md")
    assert found is not None
    assert (found.size, found.problem) == (1, "It cannot be read: Permission denied.")


@given(st.one_of(st.binary(max_size=400), st.text(st.sampled_from("-\n:ab[]#é\r\0 "), max_size=200).map(str.encode)))
def test_no_bytes_are_an_error(data: bytes) -> None:
    found = from_bytes(data, len(data), 0, Limits(100, 20))
    assert all(one.content.strip() and len(one.content) <= 100 for one in found.chunks)
    assert all(one.start_line > found.front.end_line for one in found.chunks)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return
    try:
        data.decode()
    except UnicodeDecodeError:
        assert "is not UTF-8" in str(found.problem)
