"""What a machine does by itself with what it shares: no server is asked."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from conversing import run
from memoryd.client.errors import Forbidden
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.rule_facts import RULE_FACTS
from memoryd.daemon.jobs.trim import TRIM
from memoryd.daemon.shared.sharing import lines_of
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.shared.tables.shared import Root, SharedEntry
from memoryd.daemon.store import damage, links, rescue
from memoryd.daemon.store.store import FILE_NAME
from memoryd.daemon.store.writer import Transaction
from taking_out import without
from workbench import LIMIT_S, CountingEmbedder, add, running, update


def share(core: Core, root: str, **options: Any) -> None:
    """Share a namespace, as if there were a server."""

    def write(transaction: Transaction) -> None:
        made = Root(name=root, server="host=x", passfile="", added_at=1.0, **{"conversations": 0, **options})
        number = core.store.namespaces.ensure(transaction, root)
        shared.share_namespaces(transaction.connection, shared.add_root(transaction.connection, made), [number])

    core.store.write(write).result(LIMIT_S)


def test_facts_by_rules_stay_where_other_machines_have_them_too(folder: Path) -> None:
    with running(folder, CountingEmbedder()) as core:
        for place in ("acme", "team"):
            add(core, "It is blue", place, source="extraction", metadata={"by": "rules"}, dedup=False, created_at=5.0)
        share(core, "team", conversations=1)
        assert [step.action for step in RULE_FACTS.plan(core, 0.0)] == ["delete", "note"]
        assert run(core, RULE_FACTS, kind="rule-facts")[1] == {"deleted": 1}
        with core.store.reading() as connection:
            assert connection.execute("SELECT n.name FROM memories JOIN namespaces n ON n.id = namespace").get == "team"


def test_two_versions_that_machines_made_of_a_turn_stay_linked(core: Core) -> None:
    one, other = (add(core, text, metadata={"speaker": "Ada"}).id for text in ("The limit is three", "It is five"))

    def link(transaction: Transaction) -> None:
        connection = transaction.connection
        links.add(connection, other, one, links.CONTRADICTS, 1.0)
        root = shared.add_root(connection, Root(name="team", server="", passfile="", conversations=0, added_at=1.0))
        shared.put_entry(connection, SharedEntry(root=root, id=one, memory=one))
        shared.put_entry(connection, SharedEntry(root=root, id=other, memory=other, conflict_of=one))

    core.store.write(link).result(LIMIT_S)
    assert run(core, TRIM, kind="trim")[1] == {}
    with core.store.reading() as connection:
        assert links.find_contradicted(connection, one) == [other]


def test_a_change_of_what_may_only_be_read_is_refused_in_the_words_of_the_trigger(core: Core) -> None:
    id = add(core, "The port is 80", "team").id
    share(core, "team", writable=0)
    with pytest.raises(Forbidden, match=r"^Nothing was changed: this machine may only read the shared root\.$"):
        update(core, id, content="The port is 81")


@pytest.mark.parametrize("in_force", [True, False])
def test_a_root_of_a_restored_copy_waits_unless_it_is_in_force_here(folder: Path, in_force: bool) -> None:
    with running(folder, CountingEmbedder()) as core:
        if in_force:
            share(core, "acme")
    copy, restored, former = folder / "copy.sqlite", folder / "restored", folder / "data" / FILE_NAME
    shutil.copy(former, copy)
    restored.mkdir()
    if not in_force:
        with closing(apsw.Connection(str(copy))) as connection:
            connection.execute(
                "INSERT INTO shared_roots (name, server, passfile, conversations, added_at)"
                " VALUES ('acme', 'host=x', '', 0, 1.0)"
            )
    found = rescue.restore(copy, restored, former)
    assert found.left_out["roots"] == ([] if in_force else ["acme (host=x)"])
    with closing(apsw.Connection(str(restored / FILE_NAME))) as opened:
        assert opened.execute("SELECT name, confirmed FROM shared_roots").fetchall() == [("acme", int(in_force))]


def test_a_root_that_was_restored_while_sharing_was_taken_out_waits_when_it_is_put_back(folder: Path) -> None:
    with running(folder, CountingEmbedder()) as core:
        share(core, "acme")
        add(core, "The port is 80", "acme")
    former = folder / "data" / FILE_NAME
    (folder / "restored").mkdir()
    with without("shared"):
        assert rescue.restore(former, folder / "restored", former).dropped
    former.unlink()
    (folder / "restored" / FILE_NAME).rename(former)
    with running(folder, CountingEmbedder()) as core:
        (root,) = lines_of(core).report().roots
        assert (root.root, root.state) == ("acme", "unconfirmed")
        with core.store.reading() as connection:
            assert len(shared.list_memories(connection, 1)) == 1
        assert core.store.find_problems() == []


def test_a_row_that_keeps_changes_from_being_noticed_is_found_and_removed(core: Core) -> None:
    core.store.write(lambda t: t.connection.execute("INSERT INTO shared_unnoticed VALUES (1)")).result(LIMIT_S)
    assert core.store.find_problems() == ["shared_unnoticed: a row is left, so changes here go unnoticed"]
    core.store.write(lambda t: damage.rebuild_derived(t.connection)).result(LIMIT_S)
    assert core.store.find_problems() == []
