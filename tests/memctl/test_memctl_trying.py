"""memctl model try: another model measured on one's own memories, which changes nothing and leaves nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_daemon import Memctl

from absent import needs
from embedding_server import WORDS, embeds
from memoryd.client.memctl.private import make_guarded_folder
from model_server import model_server
from workbench import Process, wait_until

NAME, OTHER = "openai:tiny-embed", "openai:another"
pytestmark = needs("bench")


@pytest.fixture
def running(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    (folder / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    with model_server() as server:
        server.will(embeds)
        config = f'[model]\nname = "{NAME}"\nfolder = "{folder}/models"\n[embedding_api]\nurl = "{server.url}"\n'
        process = Process(folder, config).start()
        try:
            yield process
        finally:
            assert process.stop() == 0


def left_over(folder: Path) -> list[str]:
    return [path.name for path in (folder / "tmp").iterdir()]


@pytest.mark.slow
def test_two_models_side_by_side_on_ones_own_memories(folder: Path, running: Process, memctl: Memctl) -> None:
    memctl("up", "--wait")
    cache = memctl("add", "We use Valkey as the cache", "--namespace", "acme", "--json").json["id"]
    memctl("add", "The gateway of ours has a limit. It closes after ninety seconds of silence", "--namespace", "acme")
    memctl("search", "which cache do we use", "--namespace", "acme")
    memctl("feedback", cache, "--useful", "--namespace", "acme")
    wait_until(lambda: '"access_count":1' in memctl("export").out)  # the mark of the search
    before = memctl("export").out
    report = memctl("model", "try", OTHER, "--json").json
    assert [(one["name"], one["in_use"]) for one in report["models"]] == [(NAME, True), (OTHER, False)]
    for one in report["models"]:
        assert [one["by_kind"][kind]["questions"] for kind in ("confirmed", "neighbours")] == [1, 1]
        assert one["by_kind"]["confirmed"]["hit_1"] == 1.0
        assert one["by_kind"]["bundled"]["questions"] > 50
        assert one["by_kind"]["bundled"]["hit_5"] > 0.4
        assert (one["dimensions"], one["disk_mb"]) == (WORDS.dimensions, 0)
        assert min(one["search_p50_ms"], one["start_ms"], one["rss_mb"]) > 0
    assert report["models"][0]["quality"] == report["models"][1]["quality"], "the server gives both the same vectors"
    assert memctl("export").out == before
    assert memctl("status", "--json").json["model"]["name"] == NAME
    assert left_over(folder) == []


@pytest.mark.slow
def test_killed_in_the_middle_it_leaves_nothing(folder: Path, running: Process) -> None:
    command = [sys.executable, "-m", "memoryd.client.memctl", "model", "try", OTHER]
    child = subprocess.Popen(command, env={**running.environment, "TMPDIR": str(folder / "tmp")})
    wait_until(lambda: bool(list((folder / "tmp").glob("memoryd-*/pid"))))
    [path] = (folder / "tmp").glob("memoryd-*/pid")
    wait_until(lambda: bool(path.read_text().strip()))
    daemon = int(path.read_text())
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    wait_until(lambda: left_over(folder) == [])
    wait_until(lambda: not Path(f"/proc/{daemon}").exists() or "Z" in Path(f"/proc/{daemon}/stat").read_text())


@pytest.mark.slow
def test_without_a_network_it_says_what_it_needs(
    folder: Path, running: Process, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_OFFLINE", "1")
    tried = memctl("model", "try", "bge-small-en-v1.5")
    assert tried.code == 1
    assert "`offline` is set" in tried.err
    assert "memctl model import DIR" in tried.err
    assert left_over(folder) == []


def test_a_guarded_folder_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with make_guarded_folder() as made:
        (made / "file").write_text("something")
    assert not made.exists()


def test_what_cannot_be_tried_is_said_in_one_sentence(running: Process, memctl: Memctl) -> None:
    assert memctl("model", "try", OTHER, "--sample", "0").code == 2
    assert memctl("model", "try", OTHER, "--way", "team").code == 2
