"""The table of commands in README.md is that of memctl."""

from readme_document import README, document


def test_the_table_of_commands_is_what_memctl_has() -> None:
    assert README.read_text() == document(), "run: make protocol"
