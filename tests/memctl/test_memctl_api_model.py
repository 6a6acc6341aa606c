"""memctl with an embedding model behind an API: switching, listing, what doctor says of its key."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Memctl
from figures import healthy

from embedding_server import WORDS, embeds
from memoryd.client.protocol import GetStatus, JobList, Jobs, ModelState, Status, Verification, Verify
from model_server import model_server
from workbench import Process

NAME = "openai:tiny-embed"


@pytest.fixture
def url() -> Iterator[str]:
    with model_server() as server:
        server.will(embeds)
        yield server.url


@pytest.mark.slow
def test_a_daemon_works_with_a_model_behind_an_api(folder: Path, url: str, memctl: Memctl) -> None:
    running = Process(folder, f'[model]\nname = "{NAME}"\nfetch = false\n[embedding_api]\nurl = "{url}"\n').start()
    try:
        memctl("add", "We use Valkey as the cache")
        memctl("up", "--wait")
        [hit] = memctl("search", "Valkey as the cache we use", "--json").json
        assert hit["similarity"] == pytest.approx(1.0, abs=1e-4)
        assert memctl("status", "--json").json["model"]["dimensions"] == WORDS.dimensions
        [row] = [row for row in memctl("model", "list", "--json").json if row["name"] == NAME]
        assert (row["dimensions"], row["description"]) == (WORDS.dimensions, f"behind {url}")
        assert f"{NAME}" in memctl("model", "list").out
        used = memctl("model", "use", "openai:another")
        state = f"openai:another, ready, {WORDS.dimensions} dimensions"
        assert used.out == f"Model in use: {state}. `memctl model use {NAME}` switches back.\n"
        assert memctl("search", "Valkey", "--json").json[0]["content"] == "We use Valkey as the cache"
        findings = {found["name"]: found for found in memctl("doctor", "model", "key-files", "--json").json}
        assert "key-files" not in findings, "one on this machine needs none"
        assert findings["model"]["message"].startswith("the settings name"), "it answers"
    finally:
        assert running.stop() == 0


@pytest.fixture
def api_status(fake: FakeDaemon, folder: Path) -> Status:
    status = healthy(
        socket=str(folder / "s"), data_dir=str(folder), model=ModelState(name=NAME, state="ready", dimensions=8)
    )
    sound = Verification(memories=0, pending_embeddings=0)
    fake.replies |= {GetStatus: status, Verify: sound, Jobs: JobList(jobs=[], at=0.0)}
    return status


def key_finding(memctl: Memctl) -> Any:
    findings = {found["name"]: found for found in memctl("doctor", "model", "key-files", "--json").json}
    return findings.get("key-files")


@pytest.mark.slow
def test_doctor_mentions_a_missing_key(
    memctl: Memctl, api_status: Status, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = key_finding(memctl)
    assert found["state"] == "warn"
    assert "no key for https://api.openai.com/v1" in found["message"]
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert key_finding(memctl)["state"] == "ok"
    (folder / "config.toml").write_text(f'[embedding_api]\nkey_file = "{folder}/key"\n')
    assert key_finding(memctl)["state"] == "fail"
    (folder / "key").write_text("x")
    (folder / "key").chmod(0o600)
    assert key_finding(memctl)["state"] == "ok"


def test_doctor_shows_what_the_api_says(memctl: Memctl, fake: FakeDaemon, api_status: Status) -> None:
    api_status.model.error = "The embedding model's server answered 401: no key"
    found = {found["name"]: found for found in memctl("doctor", "model", "key-files", "--json").json}["model"]
    assert (found["state"], "401" in found["message"]) == ("warn", True)
    assert "[embedding_api]" in found["fix"]
