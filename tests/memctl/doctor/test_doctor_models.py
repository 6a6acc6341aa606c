"""doctor, the embedding model and vectors."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from fake_daemon import FakeDaemon, Memctl
from findings import Doctor

from each import each
from memoryd.client.protocol import GetStatus, JobRun, ModelState, RunJob, Unread


def changed(fake: FakeDaemon, **fields: Any) -> None:
    fake.replies[GetStatus] = msgspec.structs.replace(fake.replies[GetStatus], **fields)


@each(
    ("name", "state", "found", "fix"),
    [
        ("mini", "ready", "ok", ""),
        ("mini", "loading", "warn", "memctl up --wait"),
        ("mini", "failed", "fail", "memctl model pull mini"),
        ("none", "missing", "fail", "memctl model list"),
        ("openai:x", "failed", "fail", "look at [embedding_api]: memctl config show"),
    ],
)
def test_the_state_of_the_model_is_told(
    doctor: Doctor, told: FakeDaemon, name: str, state: Any, found: str, fix: str
) -> None:
    changed(told, model=ModelState(name=name, state=state, error="" if state == "ready" else "why"))
    finding = doctor("model")["model"]
    assert (finding["state"], finding["fix"]) == (found, fix)


def test_offline_a_missing_model_is_neither_fetched_nor_waited_for(
    doctor: Doctor, told: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(told, model=ModelState(name="mini", state="failed", error="why"), pending_embeddings=2)
    assert doctor("embeddings")["embeddings"]["fix"] == "memctl model pull mini"
    monkeypatch.setenv("MEMORYD_OFFLINE", "1")
    found = doctor("model", "embeddings")
    assert {name: one["fix"] for name, one in found.items()} == dict.fromkeys(
        ("model", "embeddings"), "memctl model import DIR"
    )


def test_a_model_that_is_loading_is_waited_for(doctor: Doctor, told: FakeDaemon) -> None:
    ready = told.replies[GetStatus]
    loading = msgspec.structs.replace(ready, model=ModelState(name="mini", state="loading"))
    states = [loading, loading, loading]
    told.replies[GetStatus] = lambda: states.pop() if states else ready
    assert doctor("model", "--fix", "--yes")["model"]["mended"] is True


@pytest.mark.slow
def test_a_model_that_is_not_installed_is_told(doctor: Doctor, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_MODEL_DIR", str(folder / "models"))
    monkeypatch.delenv("MEMORYD_OFFLINE", raising=False)
    found = doctor("model")["model"]
    assert (found["state"], "the daemon fetches it" in found["message"]) == ("warn", True)
    monkeypatch.setenv("MEMORYD_OFFLINE", "1")
    found = doctor("model")["model"]
    assert (found["state"], found["fix"]) == ("fail", "memctl model import DIR")
    monkeypatch.setenv("MEMORYD_OFFLINE", "0")
    (folder / "config.toml").write_text("[model]\nfetch = false\n")
    found = doctor("model")["model"]
    assert (found["state"], found["fix"]) == ("fail", "memctl model pull all-MiniLM-L6-v2")
    (folder / "config.toml").write_text('[model]\nname = "no-such"\n')
    assert "neither installed nor in the catalogue" in doctor("model")["model"]["message"]


def test_memories_that_wait_for_vectors_in_vain_are_queued_again(doctor: Doctor, told: FakeDaemon) -> None:
    well = told.replies[GetStatus]
    changed(told, pending_embeddings=2)
    found = doctor("embeddings")["embeddings"]
    assert found["message"] == "2 memories without a vector yet: found by words only, and the number does not fall"

    def ran() -> JobRun:
        told.replies[GetStatus] = well
        return JobRun(job="embed", outcome="done", by="hand", started_at=0.0, took_ms=1.0)

    told.replies[RunJob] = ran
    assert doctor("embeddings", "--fix", "--yes")["embeddings"]["mended"] is True


@pytest.mark.parametrize(
    ("languages", "named"),
    [
        (["German"], "in German,"),
        (["German", "Chinese"], "in German and Chinese,"),
        (["German", "Chinese", "Thai"], "in German, Chinese, Thai,"),
        (["German", "Chinese", "Thai", "Greek"], "in German, Chinese, Thai …,"),
    ],
)
def test_languages_that_the_model_does_not_read_are_told_with_the_model_that_does(
    doctor: Doctor, told: FakeDaemon, memctl: Memctl, languages: list[str], named: str
) -> None:
    assert "languages" not in doctor("languages")
    assert "languages" not in memctl("status").out
    changed(told, unread=Unread(languages=languages, share=0.336, model="multi"))
    said = f"34% of the texts are {named} which mini does not support"
    pull = "memctl model pull multi && memctl model use multi"
    finding = doctor("languages")["languages"]
    assert (finding["state"], finding["fix"], finding["commands"]) == ("warn", pull, [])
    assert finding["message"] == f"{said}: by meaning they are hardly found"
    assert f"{said}: {pull}" in memctl("status").out
    assert memctl("status", "--json").json["unread"]["languages"] == languages
