"""doctor, the configuration, and the services that it names."""

import http.server
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from fake_daemon import FakeDaemon, Memctl
from findings import Doctor

from configs import NO_MODEL
from memoryd.client.programs.doctor.settings import check_configuration
from memoryd.client.protocol import GetStats, LlmUsage


def test_a_configuration_that_is_wrong_is_explained(doctor: Doctor, folder: Path) -> None:
    assert doctor("configuration")["configuration"]["message"] == "no file, the defaults hold"
    (folder / "config.toml").write_text("[tiers]\nring = 0\n")
    found = doctor("configuration")["configuration"]
    assert (found["state"], "ring" in found["message"]) == ("fail", True)
    assert found["message"].startswith(f"The configuration {folder / 'config.toml'} is wrong: ")
    assert found["fix"].endswith(f" {folder / 'config.toml'}")


def test_a_configuration_that_others_may_change_is_closed(doctor: Doctor, folder: Path) -> None:
    (folder / "config.toml").touch()
    (folder / "config.toml").chmod(0o666)
    assert doctor("configuration")["configuration"]["state"] == "fail"
    assert doctor("configuration", "--fix", "--yes")["configuration"]["mended"] is True
    assert (folder / "config.toml").stat().st_mode & 0o777 == 0o644


@pytest.mark.slow
def test_settings_that_are_not_in_force_yet_are_told_and_taken(doctor: Doctor, memctl: Memctl, folder: Path) -> None:
    (folder / "config.toml").write_text(NO_MODEL)
    try:
        first = memctl("up", "--json").json["pid"]
        assert doctor("configuration")["configuration"]["state"] == "ok"
        os.utime(folder / "config.toml", (time.time() + 1,) * 2)
        found = doctor("configuration")["configuration"]
        assert (found["state"], found["fix"]) == ("warn", "memctl up --restart")
        os.utime(folder / "config.toml")
        assert doctor("configuration", "--fix", "--yes")["configuration"]["mended"] is True
        assert memctl("status", "--json").json["pid"] == first
    finally:
        memctl("down")


def test_a_start_is_dated_by_when_the_daemon_answered_not_by_when_a_slow_visit_gets_to_it(folder: Path) -> None:
    (folder / "config.toml").touch()
    os.utime(folder / "config.toml", (time.time() - 30,) * 2)
    patient: Any = SimpleNamespace(status=SimpleNamespace(uptime_s=10.0), answered_at=time.time() - 60)
    found = check_configuration(patient)
    assert found is not None
    assert found.state == "warn"
    os.utime(folder / "config.toml", (time.time() - 80,) * 2)
    found = check_configuration(patient)
    assert found is not None
    assert found.state == "ok"


def test_a_key_that_others_may_read_is_made_private(doctor: Doctor, folder: Path) -> None:
    (folder / "key").write_text("x")
    (folder / "key").chmod(0o644)
    (folder / "config.toml").write_text(f'[llm]\nkey_file = "{folder}/key"\n')
    assert doctor("key-files")["key-files"]["fix"] == f"chmod 0600 {folder}/key"
    assert doctor("key-files", "--fix", "--yes")["key-files"]["mended"] is True


class _Server(http.server.BaseHTTPRequestHandler):
    """Answers with the code that its key is."""

    def do_GET(self) -> None:
        self.send_response(int(self.headers["Authorization"].split()[1]))
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), _Server) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_a_language_model_that_does_not_answer_is_told(
    doctor: Doctor, folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state(text: str) -> tuple[str, str]:
        (folder / "config.toml").write_text(text)
        found = doctor("language-model")["language-model"]
        return found["state"], found["message"]

    good = f'[llm]\nurl = "{url}"\nmodel = "m"\n'
    monkeypatch.setenv("MEMORYD_LLM_KEY", "200")
    assert state(good) == ("ok", f"m at {url} answers")
    monkeypatch.setenv("MEMORYD_LLM_KEY", "404")
    assert state(good)[0] == "ok", "a server need not have that page"
    monkeypatch.setenv("MEMORYD_LLM_KEY", "401")
    assert state(good) == ("fail", f"{url}: the key is refused (401); rules do its work meanwhile")
    assert state('[llm]\nurl = "http://127.0.0.1:1/v1"\nmodel = "m"\n')[0] == "fail"
    assert "has a url and no model" in state(f'[llm]\nurl = "{url}"\n')[1]
    monkeypatch.setenv("MEMORYD_LLM_KEY", "200")
    offline = "[network]\noffline = true\n"
    assert state(good + offline) == ("ok", f"m at {url} answers"), "it is on this machine"
    elsewhere = state('[llm]\nurl = "https://llm.invalid/v1"\nmodel = "m"\n' + offline)
    assert elsewhere == ("warn", "https://llm.invalid/v1 is not asked, since `offline` is set: rules do its work")


def test_a_language_model_that_often_fails_is_told(
    doctor: Doctor, told: FakeDaemon, folder: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "config.toml").write_text(f'[llm]\nurl = "{url}"\nmodel = "m"\n')
    monkeypatch.setenv("MEMORYD_LLM_KEY", "200")
    stats = told.replies[GetStats]
    usage = LlmUsage(model="m", requests=10, answers=9, failures=1, last_error="too slow")
    told.replies[GetStats] = msgspec.structs.replace(stats, llm=usage)
    assert doctor("language-model")["language-model"]["state"] == "ok"
    told.replies[GetStats] = msgspec.structs.replace(stats, llm=msgspec.structs.replace(usage, failures=5))
    found = doctor("language-model")["language-model"]
    assert (found["state"], found["message"]) == ("warn", "5 of 10 questions failed, the latest: too slow")
