"""What a machine only reads of a root is in none of its files."""

from pathlib import Path
from typing import Any

import pytest
from joined import decide
from standing import MEMBERS

from hosting import Agent
from memoryd.client import protocol
from memoryd.daemon.store.store import FILE_NAME
from waiting import wait_until
from workbench import Process

WORDS = (b"xylophon", b"zwingli", b"quokka")


def find(folder: Path) -> list[str]:
    """Return the files in which one of the words is, in any case."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if any(word in path.read_bytes().lower() for word in WORDS)]


@pytest.mark.slow
def test_what_was_read_is_in_no_file_of_the_machine(place: Any, folder: Path, model_dir: Path) -> None:
    """Searched, opened, listed, told at a start: not while it runs, in a backup, after a stop, a kill, a start."""
    ada, bob = (place.join(folder / name, name, "", model_dir) for name in MEMBERS[:2])
    try:
        with ada.client() as client, bob.client() as his:
            theirs = decide(his, "Xylophones are tuned by Zwingli")
            fed = decide(his, "Quokkas are fed at noon")
            client.call(protocol.Confirm(ids=[fed.id]))  # a start tells it
            wait_until(lambda: client.status().model.state == "ready")
            client.add_many([f"A note of her own number {number}" for number in range(20)])
        for session, end in enumerate((ada.stop, ada.kill, ada.stop)):
            use(ada, theirs.id, str(session))
            assert find(ada.folder) == []
            end()
            assert find(ada.folder) == []
            assert end == ada.kill or (ada.data / "memoryd.codes").exists()
            ada.start()
        assert set(find(bob.folder)) <= {FILE_NAME, f"{FILE_NAME}-wal"}  # what he saved lies there for a day
        with ada.client() as client:
            client.add("Quokkas at home")
        assert find(ada.folder) != []  # what is saved here is found so
    finally:
        for process in (ada, bob):
            process.stop()


def use(process: Process, id: str, session: str) -> None:
    """Read in each way that there is."""
    project = process.folder / "api"
    (project / ".git").mkdir(parents=True, exist_ok=True)
    agent = Agent("claude-code", process.folder, project, session)
    agent.environment |= {"MEMORYD_NAMESPACE": "acme/api"}
    asked = "Who tunes them, and when are they fed?"
    with process.client("acme/api") as client:
        search = protocol.Search(query=asked, namespace="acme/api", explain=True)
        wait_until(lambda: sum(bool(hit.shared) for hit in client.call(search)) == 2)
        assert client.get(id).shared == "acme"
        assert sum(bool(one.shared) for one in client.list(limit=100)) == 2
        client.call(protocol.History(id=id))
        client.call(protocol.Namespaces())
        client.context(asked)
        wait_until(lambda: "Quokkas" in agent.hook("session-start", source="startup").said)
        agent.hook("prompt", prompt=asked)
        client.call(protocol.Backup())
