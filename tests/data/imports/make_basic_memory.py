"""Make a project of basic-memory 0.17.9 (`pip install basic-memory`): `python make_basic_memory.py FOLDER`.

The notes are written by its command `tool write-note`, and so is what its database then says of them.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

FOLDER = Path(sys.argv[1]).resolve()
shutil.rmtree(FOLDER, ignore_errors=True)
HOME = FOLDER / "home"
HOME.mkdir(parents=True)
os.environ.update(HOME=str(HOME), BASIC_MEMORY_HOME=str(FOLDER / "home" / "main"))

NOTES = [
    (
        "Coffee brewing",
        "kitchen",
        ["coffee", "brewing"],
        "# Coffee brewing\n\nWater just below the boil, medium grind.\n\n## Observations\n"
        "- [method] Pour over takes 4 minutes #brewing (counted twice)\n- [tip] Grind right before #fresh\n\n"
        "## Relations\n- requires [[Kettle]]\n- pairs_with [[Chocolate]]\n",
    ),
    ("Kettle", "kitchen", [], "# Kettle\n\n- [fact] It holds 1.2 litres\n- [ ] Descale it\n"),
    ("Größe – サイズ", "", ["i18n"], "Names may hold any script.\n"),
]


COMMAND = [str(Path(sys.executable).with_name("basic-memory"))]


def say(*words: str) -> None:
    subprocess.run([*COMMAND, *words], check=True, stdin=subprocess.DEVNULL)


say("project", "add", "cookbook", str(FOLDER / "notes"), "--default")
for title, folder, tags, content in NOTES:
    given = [word for tag in tags for word in ("--tags", tag)]
    say(
        "tool",
        "write-note",
        "--title",
        title,
        "--folder",
        folder,
        "--content",
        content,
        "--project",
        "cookbook",
        *given,
    )
database = next(path for path in FOLDER.rglob("memory.db"))
connection = sqlite3.connect(database)
connection.execute("UPDATE project SET path = '/srv/cookbook'")
connection.commit()
connection.execute("PRAGMA journal_mode = delete")
connection.execute("PRAGMA page_size = 512")
connection.execute("VACUUM")
connection.close()
shutil.copy(database, FOLDER / "memory.db")
shutil.rmtree(HOME)
