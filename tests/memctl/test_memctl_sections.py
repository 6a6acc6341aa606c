"""Sections of the configuration that memctl writes: all else stays as it is."""

import tomllib
from pathlib import Path

import pytest

from memoryd.client import Invalid
from memoryd.client.programs.memctl.sections import read_section, write_section

BEFORE = """\
# mine
[model]
name = "none"  # kept

[shared.acme]
server = "ssh://old"
exclude = [
  "acme/hr",
]
# of the next one
[hooks]
start_tokens = 5
"""


def test_a_section_is_replaced_and_removed_and_the_rest_stays(folder: Path) -> None:
    file = folder / "config.toml"
    file.write_text(BEFORE)
    file.chmod(0o640)
    settings: dict[str, str | list[str]] = {"server": "ssh://home", "repositories": ['github.com/a"b/*'], "token": "ü"}
    assert read_section("acme") == {"server": "ssh://old", "exclude": ["acme/hr"]}
    write_section("acme", settings)
    assert read_section("acme") == settings
    text = file.read_text()
    assert 'name = "none"  # kept' in text
    assert "# of the next one\n[hooks]\nstart_tokens = 5" in text
    assert file.stat().st_mode & 0o777 == 0o640
    write_section("acme", None)
    assert read_section("acme") is None
    assert tomllib.loads(file.read_text()) == {"model": {"name": "none"}, "hooks": {"start_tokens": 5}}


def test_the_file_is_made_and_a_link_stays_one(folder: Path) -> None:
    file = folder / "config.toml"
    write_section("acme", {"server": "ssh://home"})
    assert file.stat().st_mode & 0o777 == 0o600
    there = folder / "there.toml"
    file.rename(there)
    file.symlink_to(there)
    write_section("web", {"server": "ssh://home"})
    assert file.is_symlink()
    assert set(tomllib.loads(there.read_text())["shared"]) == {"acme", "web"}


@pytest.mark.parametrize("text", ['[shared]\nacme = {server = "ssh://x"}\n', 'shared.acme.server = "ssh://x"\n'])
def test_what_is_written_otherwise_is_left_alone(folder: Path, text: str) -> None:
    (folder / "config.toml").write_text(text)
    with pytest.raises(Invalid, match=r"yourself|wrong"):
        write_section("acme", {"server": "ssh://home"})
    assert (folder / "config.toml").read_text() == text
