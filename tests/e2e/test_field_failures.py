"""Failures that memory daemons had in the field, and the tests that show this one does not have them.

Where the test is elsewhere the table names it; the others stand below. `TABLE` is checked: what it names exists.
"""

import asyncio
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import workbench
from configs import NO_MODEL
from memoryd.client import AsyncClient, Busy
from memoryd.client.errors import ModelUnavailable
from memoryd.client.protocol import Consolidate, Jobs, RunJob, Verify
from memoryd.client.protocol.topics import GraphNodes
from memoryd.daemon.jobs.table import list_jobs
from waiting import wait_until
from wire import Wire, request
from workbench import CountingEmbedder, Daemon, Process, add, found, running

TESTS = Path(__file__).parent.parent
TABLE = """
The embedder failed to load once and the daemon stayed "warming" for hours:
  here: test_a_model_that_cannot_be_loaded_is_shown_and_loaded_once_it_is_mended
  daemon/embedding/test_loading.py: test_a_load_that_fails_is_shown_and_tried_again_until_it_succeeds
Without the embedder every query gave the same hits:
  here: test_without_an_embedder_unrelated_queries_get_their_own_answers
  daemon/embedding/test_loading.py: test_without_a_model_different_questions_get_different_answers_by_their_words
Embedding was fire and forget, and some memories were never found:
  here: test_the_gauge_of_memories_without_a_vector_returns_to_zero_after_crashes
  daemon/jobs/test_jobs_upkeep.py: test_a_memory_that_the_queue_lost_gets_its_vector
A background sweep looped and took a processor for hours:
  daemon/jobs/test_jobs_runs.py: test_the_deadline_interrupts_a_run_keeps_what_was_done_and_leaves_the_rest
  daemon/jobs/test_jobs_runs.py: test_a_slice_that_holds_the_writer_too_long_ends_the_run
  daemon/jobs/test_jobs_states.py: test_a_failing_job_backs_off_and_is_quarantined_until_it_is_resumed
  daemon/jobs/test_jobs_states.py: test_back_off_never_exceeds_an_hour
Any number of recalls at once were let in, which looked like a hang:
  here: test_a_hundred_clients_at_once_get_an_answer_or_hear_when_to_come_again
  daemon/server/test_server.py: test_a_full_lane_answers_busy_at_once_and_forgets_no_accepted_call
A recall waited behind an import:
  here: test_a_recall_is_answered_while_an_import_of_another_client_is_held
  daemon/server/test_server.py: test_an_import_holds_up_no_search_of_others
A query was embedded twice, and again when it was repeated:
  here: test_a_recall_embeds_its_query_once_whichever_calls_ask_it
  daemon/embedding/test_economy.py: test_a_search_embeds_its_query_once_and_a_repeated_one_not_at_all
The service manager throttled the daemon as background work:
  systemd/test_units.py: test_nothing_puts_the_daemon_into_a_throttled_class
  systemd/test_user_manager.py: test_nothing_slows_the_daemon_down
Nothing bounded the search by vectors:
  here: test_a_slow_search_by_vectors_leaves_the_words_within_the_deadline
  daemon/embedding/test_economy.py: test_a_slow_model_is_not_waited_for_past_the_deadline
RSS grew without a limit:
  daemon/jobs/test_jobs_upkeep.py: test_memory_that_was_freed_is_given_back
  e2e/test_soak.py: test_after_many_mixed_calls_the_daemon_is_hardly_larger_than_when_it_was_warm
All that was stored was built anew before a restarted daemon answered:
  here: test_a_restart_answers_before_the_model_is_there_and_embeds_nothing_again
  daemon/embedding/test_economy.py: test_a_generation_takes_in_a_snapshot_unless_a_row_was_written_or_removed_since
The proxy on standard input and output dropped replies when the input ended:
  memctl/mcp_server/test_mcp_stdio.py: test_replies_are_printed_when_the_input_has_ended
An upgrade left the old code running:
  e2e/test_restart.py: test_a_newer_client_makes_an_upgraded_daemon_restart_on_its_socket_and_no_call_of_eight_clients_fails
Daemons were started again and again, several at once:
  daemon/server/test_server_process.py: test_a_second_daemon_on_the_same_socket_or_data_is_refused_and_the_first_goes_on
  client/test_client_autostart.py: test_processes_that_start_at_once_end_up_on_one_daemon
  systemd/test_user_manager.py: test_a_service_that_cannot_start_is_given_up_and_says_where_to_look
Another model of the same dimension was put in place, and vectors of two models were compared:
  daemon/embedding/test_switch.py: test_a_model_of_the_same_name_that_makes_other_vectors_embeds_everything_anew
A memory was shown to an agent, said again by it, and learned as new:
  here: test_what_an_agent_was_told_and_says_again_is_not_learned_anew
  daemon/tiers/test_recalls.py: test_an_added_repetition_is_evidence_and_no_new_memory
A store of exactly one memory crashed:
  here: test_every_call_works_on_stores_of_none_one_and_two_memories
The store grew to terabytes:
  daemon/store/test_room.py: test_at_the_limit_nothing_is_added_while_reading_and_deleting_go_on
"""  # noqa: E501  names of tests


def test_every_test_that_the_table_names_is_there() -> None:
    names = re.findall(r"^  (\S+): (test_\w+)$", TABLE, re.MULTILINE)
    rows = [line for line in TABLE.strip().split("\n") if not line.startswith(" ")]
    assert all(row.endswith(":") for row in rows)
    assert len(names) + len(rows) == len(TABLE.strip().split("\n"))
    for place, name in names:
        path = Path(__file__) if place == "here" else TESTS / place
        assert re.search(rf"^(async )?def {name}\(", path.read_text(), re.MULTILINE), (place, name)


# The embedder --------------------------------------------------------------------------------------------------------


@pytest.fixture
def broken_models(folder: Path, model_dir: Path) -> Path:
    """A folder of models in which the default one is cut off."""
    made = folder / "models"
    shutil.copytree(model_dir / "all-MiniLM-L6-v2", made / "all-MiniLM-L6-v2")
    weights = made / "all-MiniLM-L6-v2" / "model.onnx"
    weights.write_bytes(weights.read_bytes()[:1000])
    return made


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_is_shown_and_loaded_once_it_is_mended(
    folder: Path, broken_models: Path, model_dir: Path
) -> None:
    daemon = process_of(folder, MEMORYD_MODEL_DIR=str(broken_models))
    try:
        with daemon.start().client() as client:
            wait_until(lambda: client.status().model.state == "failed")
            assert client.status().model.error
            assert client.search("anything").degraded == ["vector"]
            shutil.copy(model_dir / "all-MiniLM-L6-v2" / "model.onnx", broken_models / "all-MiniLM-L6-v2")
            wait_until(lambda: client.status().model.state == "ready")
            assert client.status().model.attempts >= 1
            assert client.search("anything").degraded == []
    finally:
        daemon.stop()


@pytest.mark.slow
def test_without_an_embedder_unrelated_queries_get_their_own_answers(process: "Process") -> None:
    texts = {
        "where do herons fish": "Herons fish in the shallow bay at dawn.",
        "when is the budget due": "The budget is due on the third of May.",
        "what caches sessions": "Valkey caches the sessions of the shop.",
    }
    with process.client() as client:
        client.add_many([{"content": text} for text in texts.values()])
        for query, text in texts.items():
            hits = client.search(query)
            assert ([hit.content for hit in hits], hits.degraded) == ([text], ["vector"])
        assert client.search("a word of none of them").hits == []


@pytest.mark.slow
def test_the_gauge_of_memories_without_a_vector_returns_to_zero_after_crashes(folder: Path, model_dir: Path) -> None:
    daemon = process_of(folder, NO_MODEL)
    with daemon.start().client() as client:
        client.add_many([{"content": f"Gauge {n} of the northern dam"} for n in range(150)], dedup=False)
        assert client.stats().pending_embeddings == 150
    daemon.kill()
    daemon = process_of(folder, MEMORYD_MODEL_DIR=str(model_dir))
    with daemon.start().client() as client:
        wait_until(lambda: client.stats().embedded > 0)
    daemon.kill()  # in the middle of the queue
    try:
        with daemon.start().client() as client:
            wait_until(lambda: client.stats().embedded == 150)
            assert client.stats().pending_embeddings == 0
            hits = client.search("Gauge 93 of the northern dam", limit=150)
            assert len(hits) == 150
            assert all(hit.similarity is not None for hit in hits)
    finally:
        daemon.stop()


def test_a_recall_embeds_its_query_once_whichever_calls_ask_it(start_daemon: Callable[..., "Daemon"]) -> None:
    daemon = start_daemon()
    asked: list[str] = []
    embed = daemon.embedder.embed_query
    daemon.embedder.embed_query = lambda text: asked.append(text) or embed(text)  # type: ignore[func-returns-value, method-assign]
    with daemon.client() as client:
        id = client.add("Herons fish in the bay at dawn.").id
        client.search("where do herons fish")
        client.search("where do herons fish", limit=3)
        client.explain("where do herons fish")
        client.why_not(id, "where do herons fish")
        client.context("where do herons fish")
    assert asked == ["where do herons fish"]


def test_a_slow_search_by_vectors_leaves_the_words_within_the_deadline(start_daemon: Callable[..., "Daemon"]) -> None:
    daemon = start_daemon()
    with daemon.client() as client:
        client.add("Herons fish in the bay at dawn.")
        daemon.embedder.gate.clear()  # from now on no vector is ever made
        answer = client.search("where do herons fish", deadline_ms=100)
        assert ([hit.content for hit in answer], answer.degraded) == (["Herons fish in the bay at dawn."], ["vector"])
        text = client.context("where do herons fish", deadline_ms=100)
        assert "vector" in text.degraded


def test_a_restart_answers_before_the_model_is_there_and_embeds_nothing_again(folder: Path) -> None:
    with running(folder, CountingEmbedder()) as core:
        for number in range(60):
            add(core, f"Note {number} about herons")
    embedder, loaded = CountingEmbedder(), False

    def load(name: str, where: Path) -> Any:
        wait_until(lambda: loaded)
        return embedder

    with running(folder, load, ready=False) as core:
        assert found(core, "note 42")[0] == "Note 42 about herons"
        add(core, "Written before the model was there")
        loaded = True
        wait_until(lambda: core.embedding.active is not None and core.embedding.count_pending() == 0)
        assert embedder.texts == ["Written before the model was there"]
        generation = core.embedding.active
        assert generation is not None
        wait_until(lambda: len(generation.index) == 61)  # just after the commit


# Many at once --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_hundred_clients_at_once_get_an_answer_or_hear_when_to_come_again(folder: Path) -> None:
    daemon = process_of(folder, NO_MODEL)
    daemon.constants = {"daemon.server.server.WORKERS": 2, "daemon.server.server.MAX_QUEUED": 8}
    daemon.start()
    with daemon.client() as client:
        client.add_many([{"content": f"Note {number} about herons"} for number in range(200)], dedup=False)
    said: list[str] = []

    async def recall(number: int) -> None:
        async with AsyncClient(socket=daemon.socket, autostart=False, timeout_s=60) as client:
            try:
                hits = await client.search(f"note {number}")
                said.append(hits[0].content)
            except Busy as busy:
                said.append(f"again in {busy.data['retry_after_ms']} ms")

    try:
        await asyncio.wait_for(asyncio.gather(*(recall(number) for number in range(100))), 60)
        assert len(said) == 100
        assert all(re.fullmatch(r"Note \d+ about herons|again in [1-9]\d* ms", answer) for answer in said)
        wires = [Wire(daemon.socket) for _ in range(100)]  # clients that do not come again by themselves
        for number, wire in enumerate(wires):
            wire.send(request({"method": "search", "query": f"note {number}"}))
        replies = [wire.receive() for wire in wires]
        assert all(reply is not None and (reply[0] == 0 or reply[2] == "busy") for reply in replies)
        assert any(reply is not None and reply[0] == 0 for reply in replies)
        for wire in wires:
            wire.socket.close()
    finally:
        daemon.stop()


def test_a_recall_is_answered_while_an_import_of_another_client_is_held(narrow: Callable[..., "Daemon"]) -> None:
    daemon = narrow(1)
    with daemon.client() as client, daemon.client() as importer:
        client.add("Herons fish in the bay at dawn.")
        client.search("where do herons fish")  # its vector is known from now on
        daemon.embedder.gate.clear()
        work = in_thread(lambda: importer.add_many([{"content": f"imported {number}"} for number in range(500)]))
        wait_until(lambda: daemon.embedder.held > 0)
        assert client.search("where do herons fish")[0].content == "Herons fish in the bay at dawn."
        assert client.list(reach="all").total == 1  # the import is still under way
        daemon.embedder.gate.set()
        assert work().created == 500


# What agents say again -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_an_agent_was_told_and_says_again_is_not_learned_anew(real: "Process") -> None:
    with real.client("team/agent") as client:
        fact = client.add("The staging database is rebuilt from the backup every Sunday night.", type="fact")
        told = client.context("when is the staging database rebuilt", session="s1")
        assert "rebuilt from the backup" in told.text
        wait_until(lambda: client.get(fact.id).access_count > 0)  # what a reply leaves behind is done after it
        line = next(line for line in told.text.splitlines() if "rebuilt from the backup" in line)
        said = client.observe(
            [
                {"role": "assistant", "content": "The staging database is rebuilt from the backup every Sunday night."},
                {"role": "assistant", "content": line},
            ],
            session="s1",
        )
        assert [turn.outcome for turn in said] == ["skipped", "skipped"]
        again = client.add("The staging database is rebuilt from the backup every Sunday night.", type="fact")
        assert (again.outcome, again.id) == ("merged", fact.id)
        assert client.stats().memories == 1


# Sizes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_call_works_on_stores_of_none_one_and_two_memories(process: "Process") -> None:
    ids: list[str] = []
    for size in range(3):
        with process.client() as client:
            if size:
                ids.append(client.add(f"Memory {size} of the smallest store there is", type="note").id)
                client.observe([{"role": "user", "content": f"We decided to deploy version {size} on Tuesday."}])
            read_everything(client, size, ids)
        process.kill()
        process.start()
    with process.client() as client:
        client.delete(*ids)
        read_everything(client, 0, [])


def read_everything(client: Any, size: int, ids: list[str]) -> None:
    """Make every kind of call on a store of so many notes."""
    assert client.list(type="note").total == size
    for query in ("smallest store", "nothing like it", "the"):
        client.search(query)
        client.explain(query)
        assert client.context(query, max_tokens=300).tokens <= 300
    for id in ids:
        assert client.get(id).id == id
        assert any(hit.id == id for hit in client.search("smallest store"))
        assert list(client.history(id))
    assert len(client.export_memories(type=["note"])) == size
    client.call(Consolidate(dry_run=True))
    for job in client.call(Jobs()).jobs:
        client.call(RunJob(name=job.name))
    assert {run.job for run in client.call(Jobs(limit=100)).runs} == set(list_jobs())
    client.call(GraphNodes())
    with pytest.raises(ModelUnavailable):  # it rests on vectors, and this daemon has no model
        client.graph_rebuild()
    client.graph_topics()
    client.tiers()
    client.turns()
    client.stats()
    assert client.call(Verify()).problems == []


# What they share -----------------------------------------------------------------------------------------------------


def process_of(folder: Path, config: str = "", **environment: str) -> "Process":
    """Return the real daemon, not started, on what is in a folder."""
    made: Process = workbench.Process(folder, config or "[model]\nfetch = false\n", environment)
    return made


def in_thread(work: Callable[[], Any]) -> Callable[[], Any]:
    """Begin work on another thread; what is returned waits for it and gives its result."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(work)
    pool.shutdown(wait=False)
    return lambda: future.result(120)
