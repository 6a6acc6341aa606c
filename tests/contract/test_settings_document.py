"""docs/settings.md is what the configuration says, and its defaults are what the daemon reads."""

import re
import tomllib
from pathlib import Path

import msgspec
from settings_document import VARIABLES, WISHES, document

from each import each
from memoryd.client.programs.doctor import installation
from memoryd.daemon.config import Config, SharedConfig

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_is_what_the_configuration_says() -> None:
    assert PAGE.read_text() == document(), "run: make protocol"


def test_the_defaults_on_the_page_written_to_a_file_are_the_defaults() -> None:
    lines = []
    for heading, row in re.findall(r"^\| \*\*`(\[.+\])`|^\| (`\w+` \| `.*?`) \|", PAGE.read_text(), re.MULTILINE):
        lines.append(heading or re.sub(r"`(\w+)` \| `(.*)`", r"\1 = \2", row))
    given = tomllib.loads("\n".join(lines))
    root = given.pop("shared")["NAME"]
    assert msgspec.convert(given, Config) == Config()
    assert msgspec.convert(root, SharedConfig) == SharedConfig()


def test_every_variable_that_memoryd_reads_is_on_the_page() -> None:
    assert set(VARIABLES) >= installation.VARIABLES


@each(("wish", "line"), [(wish, line) for wish, line, _ in WISHES])
def test_what_people_are_told_to_write_is_a_setting_that_changes_something(wish: str, line: str) -> None:
    given = tomllib.loads(line.replace("] ", "]\n", 1))
    assert msgspec.convert(given, Config) != Config(), wish
