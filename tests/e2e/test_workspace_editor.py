"""10,000 files, and an editor that saves one of them 20 times a second while notes are written into it."""

import subprocess
import sys
from pathlib import Path

import pytest

from workbench import Process, wait_until

FILES = 10_000
SAVES = 200
# It appends a line, as a save of all of its text; where the file was changed since it was read it reads again, as
# editors do.
EDITOR = """
import os, sys, time
path, number = sys.argv[1], 0
while number < int(sys.argv[2]):
    time.sleep(0.05)
    before, text = os.stat(path), open(path).read()
    draft = path + "~"
    with open(draft, "w") as file:
        file.write(text + f"- saved {number}\\n")
    now = os.stat(path)
    if (now.st_ino, now.st_size) != (before.st_ino, before.st_size):
        continue
    if number % 2:
        os.rename(draft, path)
    else:
        with open(path, "w") as file:
            file.write(text + f"- saved {number}\\n")
    number += 1
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_beside_an_editor_nothing_is_torn_and_no_note_is_lost(folder: Path, process: Process) -> None:
    memory = folder / "notes" / "memory"
    for number in range(FILES):
        inner = memory / f"part{number % 100}"
        inner.mkdir(parents=True, exist_ok=True)
        (inner / f"{number}.md").write_text(f"# Note {number}\n\nIt says {number}.\n")
    shared = memory / "shared.md"
    shared.write_text("# Shared\n\n- one\n")
    kept = dict[str, str]()
    with process.client(timeout_s=300) as client:
        client.add_workspace(folder / "notes")
        client.index_workspace("notes")
        editor = subprocess.Popen([sys.executable, "-c", EDITOR, str(shared), str(SAVES)])
        number = 0
        while editor.poll() is None:
            written = client.remember(f"note{number}x.", "notes", file="shared")
            if written.id:
                kept[f"- note{number}x."] = written.id
            number += 1
        assert editor.returncode == 0
        lines = shared.read_text().splitlines()
        wait_until(lambda: client.workspaces("notes").workspaces[0].files == FILES + 1)
        found = client.search(f"note{number - 1}x", tier="documents")
    whole = {"# Shared", "", "- one", *(f"- saved {n}" for n in range(SAVES)), *(f"- note{n}x." for n in range(number))}
    assert [line for line in lines if line not in whole] == []
    assert [line for line in kept if line not in lines] == []
    assert len(kept) > SAVES // 10
    assert any(f"note{number - 1}x" in hit.content for hit in found)
