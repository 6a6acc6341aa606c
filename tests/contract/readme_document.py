"""Print README.md with its table of commands written anew: python tests/contract/readme_document.py > README.next"""

import re
from pathlib import Path

from memoryd.client.programs.memctl.commands import GROUPS

README = Path(__file__).parents[2] / "README.md"
_TABLE = re.compile(r"(?<=\n## memctl\n)\| \| \|\n\|---\|---\|\n(\|.*\n)*")


def document() -> str:
    """Return the text of README.md with a row for each group of commands."""
    rows = ["| | |", "|---|---|"]
    for title, commands in GROUPS.items():
        words = dict.fromkeys(name if " " not in name else f"{name.split()[0]} …" for name in commands)
        rows.append(f"| {title} | {' '.join(f'`{word}`' for word in words)} |")
    table = "".join(f"{row}\n" for row in rows)
    text, number = _TABLE.subn(lambda found: table, README.read_text())
    assert number == 1
    return text


if __name__ == "__main__":
    print(document(), end="")
