"""What a place has taken lies here for 24 hours, and is there again once the place comes back without it."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from database import Team
from joined import Joined, Shared, compare, decide, let_a_day_pass
from machine import Machine, Pair
from test_moving import holds

from memoryd.client import Client, protocol
from memoryd.client.protocol import GetShared, RevokeToken, Update
from memoryd.client.transport.postgres import rights
from memoryd.daemon.store.store import FILE_NAME
from memoryd.daemon.upkeep import rescue
from waiting import wait_until
from workbench import Daemon


def list_kept(joined: Joined) -> list[str]:
    """Return the texts that lie here."""
    with joined.daemon.core.store.reading() as connection:
        sql = "SELECT said ->> '$.row.content' FROM sent ORDER BY at"
        return [str(content) for (content,) in connection.execute(sql)]


def test_what_is_taken_lies_here_as_it_is_there_until_it_is_deleted(joined: Joined) -> None:
    folder = joined.daemon.core.folder
    added = joined.decide("Xylophones are tuned on Tuesdays")
    assert list_kept(joined) == ["Xylophones are tuned on Tuesdays"]
    done = joined.here.call(Update(id=added.id, content="Quokkas are fed at noon", pinned=True))
    wait_until(lambda: list_kept(joined) == ["Quokkas are fed at noon"])
    wait_until(lambda: not holds(folder, b"xylophon"))
    joined.here.undo(done.operation)
    wait_until(lambda: list_kept(joined) == [])
    other = joined.decide("Zwingli builds on Mondays")
    assert list_kept(joined) == ["Zwingli builds on Mondays"]
    joined.here.delete(other.id)
    wait_until(lambda: not holds(folder, b"zwingli"))
    joined.decide("Numbats replace them", supersedes=joined.decide("Wombats hold").id)
    assert list_kept(joined) == ["Numbats replace them"]


def test_it_is_erased_here_by_its_words_its_id_and_its_namespace_also_in_copies(shared: Shared) -> None:
    folder = shared.daemon.core.folder
    shared.decide("Xylophones are tuned on Tuesdays")
    quokkas = shared.decide("Quokkas are fed at noon")
    shared.decide("Zwingli builds on Mondays", "acme/web")
    shared.here.call(protocol.Backup())
    assert len(holds(folder, b"xylophon")) > 1  # the database and its copy
    erases: tuple[tuple[dict[str, Any], bytes], ...] = (
        ({"matching": "xylophones"}, b"xylophon"),
        ({"ids": [quokkas.id[:8]]}, b"quokka"),
        ({"namespace": "acme/web", "reach": "subtree"}, b"zwingli"),
    )
    for how, word in erases:
        assert shared.here.call(protocol.Erase(**how, copies=True)).count == 1
        wait_until(lambda word=word: not holds(folder, word))  # type: ignore[misc]
    assert list_kept(shared) == []
    assert len(shared.list_there()) == 3


def test_it_goes_after_a_day_at_a_refusal_and_when_the_root_is_left(
    joined: Joined, start_daemon: Callable[..., Daemon]
) -> None:
    folder = joined.daemon.core.folder
    joined.decide("Xylophones are tuned on Tuesdays")
    let_a_day_pass(joined.daemon)
    wait_until(lambda: not holds(folder, b"xylophon"))
    joined.decide("Quokkas are fed at noon")
    if isinstance(joined, Shared):
        joined.there.call(RevokeToken(name="acme"))
    else:
        assert isinstance(joined, Team)
        with psycopg.connect(joined.server.url()) as connection:
            rights.revoke(connection, "acme", "ada")
    assert joined.here.search("quokkas").degraded == ["shared:acme"]
    wait_until(lambda: not holds(folder, b"quokka"))
    assert list_kept(joined) == []


@pytest.mark.slow
def test_nothing_of_it_is_here_once_the_root_is_left(home: Machine, laptop: Machine) -> None:
    home.say("shared", "create", "acme", "--repo", "github.com/acme/*")
    laptop.say("shared", "join", "acme", "--server", "ssh://place", "--memctl", home.memctl, "--yes")
    assert laptop.add("Xylophones are tuned on Tuesdays", "acme/api").shared == "acme"
    assert holds(laptop.folder, b"xylophon")
    laptop.say("shared", "leave", "acme", "--keep", "none")
    assert not holds(laptop.folder, b"xylophon")


# A place that comes back without its latest changes ---------------------------------------------------------------


def test_a_database_that_is_restored_from_an_older_dump_gets_what_it_lacks_once(team: Team) -> None:
    kept, erased, deleted = (team.decide(text) for text in ("It stays", "It is erased", "It is deleted"))
    bob = team.join("bob")[1]
    assert team.run("SELECT memoryd_acme.erase(%s)", erased.id, role="ada") == [(True,)]
    bob.call(protocol.Delete(ids=[deleted.id]))
    postgres = team.server
    postgres.dump("team", "older")
    lost = team.decide("Releases are on Tuesdays", metadata={"why": "calm"}, importance=0.9)
    team.here.call(Update(id=lost.id, content="Releases are on Fridays"))
    team.decide("Builds take nine minutes", supersedes=kept.id)
    decide(bob, "Bob's is lost, too")
    wait_until(lambda: "Releases are on Fridays" in list_kept(team))
    postgres.run("DROP DATABASE team WITH (FORCE)", database="postgres")
    postgres.run("ALTER DATABASE older RENAME TO team", database="postgres")
    assert team.list_there() == ["It stays"]
    wait_until(lambda: _compared(team.clients) and len(team.list_there()) == 4)
    wanted = ["Bob's is lost, too", "Builds take nine minutes", "It stays", "Releases are on Fridays"]
    assert team.list_there() == wanted
    [found] = team.run("SELECT author, importance, metadata FROM memoryd_acme.memories WHERE content LIKE 'Releases%'")
    assert found == ("ada", 0.9, {"why": "calm"})
    [(content,)] = team.run("SELECT content FROM memoryd_acme.memories WHERE superseded_by IS NOT NULL")
    assert content == "It stays"
    wait_until(lambda: sorted(list_kept(team)) == ["Builds take nine minutes", "Releases are on Fridays"])
    compare(team.daemon)
    assert team.list_there() == wanted
    assert team.list_gaps() == []


def _compared(clients: list[Client]) -> bool:
    """Have each daemon use its line."""
    for client in clients:
        client.call(GetShared(send=True))
        client.search("wake the line")
    return True


@pytest.mark.slow
@pytest.mark.parametrize("by_memctl", [True, False])
def test_a_memoryd_that_is_restored_from_a_backup_gets_what_it_lacks_once(pair: Pair, by_memctl: bool) -> None:
    """What was erased since stays erased after `memctl restore`; a place whose files were replaced knows nothing."""
    place = pair.place
    with pair.here.client() as client:
        decide(client, "It stays")
        with place.client() as owner:
            copy = Path(owner.call(protocol.Backup()).path)
        erased = decide(client, "The password is under the mat")
        lost = decide(client, "Releases are on Tuesdays", dedup=False)
        client.call(Update(id=lost.id, content="Releases are on Fridays"))
        place.stop()
        waited = decide(client, "Builds take nine minutes")
        assert waited.waiting
        place.start()
        pair.wait_until_sent()
        if by_memctl:
            with place.client() as owner:
                owner.erase(ids=[erased.id])
        place.stop()
        if by_memctl:
            restore(place, copy)
        else:
            for file in place.data.glob(f"{FILE_NAME}*"):
                file.unlink()
            shutil.copyfile(copy, place.data / FILE_NAME)
        place.start()
        wanted = ["Builds take nine minutes", "It stays", "Releases are on Fridays"]
        if not by_memctl:
            wanted.append("The password is under the mat")
        wait_until(lambda: _compared([client]) and len(pair.list_there()) >= len(wanted), 60)
        assert pair.list_there() == wanted
        wait_until(lambda: sorted(read_kept(pair.here.data)) == wanted)


def test_a_restored_copy_knows_the_adds_of_what_was_erased_since(shared: Shared, folder: Path) -> None:
    shared.there.call(protocol.Backup(path=str(folder / "copy")))
    shared.decide("Releases are on Tuesdays")
    erased = shared.decide("The password is under the mat")
    shared.there.erase(ids=[erased.id])
    (folder / "restored").mkdir()
    rescue.restore(folder / "copy", folder / "restored", shared.place.core.folder / FILE_NAME)
    with closing(apsw.Connection(str(folder / "restored" / FILE_NAME))) as connection:
        assert connection.execute("SELECT id, operation FROM applied").fetchall() == [(erased.id, erased.operation)]


def restore(place: Any, copy: Path) -> None:
    command = [sys.executable, "-m", "memoryd.client.programs.memctl", "restore", str(copy)]
    done = subprocess.run(command, env=place.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def read_kept(data: Path) -> list[str]:
    with closing(apsw.Connection(str(data / FILE_NAME))) as connection:
        found: Any = connection.execute("SELECT said ->> '$.row.content' FROM sent")
        return [content for (content,) in found]
