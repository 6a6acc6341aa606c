"""doctor and what is installed."""

import re
import sys
from pathlib import Path

import pytest
from findings import Doctor

from memoryd.client.extras import advise
from memoryd.client.programs.doctor import installation

SOURCE = Path(__file__).parents[3]


def test_missing_packages_of_the_daemon_are_told(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor("installation")["installation"]["state"] == "ok"
    monkeypatch.setattr("memoryd.client.programs.memctl.local.find_spec", lambda name: None)
    found = doctor()
    assert found["installation"]["fix"] == advise("daemon")
    assert {"configuration", "model"}.isdisjoint(found), "nothing can be told of them"


def test_packages_that_are_missing_or_too_old_are_told(
    doctor: Doctor, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert doctor("installation")["installation"]["state"] == "ok"
    wanted = ["apsw>=999.1", "no-such-package>=1", "numpy>=1; python_version >= '3.11'", "old; python_version < '3.8'"]
    lines = [f'Requires-Dist: {line}{" and" if ";" in line else ";"} extra == "daemon"' for line in wanted]
    info = folder / "memoryd-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", "Name: memoryd", "Version: 0.1.0", *lines]))
    monkeypatch.syspath_prepend(str(folder))
    found = doctor("installation")["installation"]
    assert found["state"] == "fail"
    assert re.fullmatch(r"apsw [\d.]+ is older than 999\.1; no-such-package is missing", found["message"])
    assert found["commands"] == [], "what is installed is for a person to decide"


def test_another_memctl_on_the_path_is_told(doctor: Doctor, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path(sys.prefix) / "bin"
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert doctor("command")["command"]["message"].startswith("there is no memctl on $PATH")
    monkeypatch.setenv("PATH", str(own))
    assert doctor("command")["command"]["state"] == "ok"
    (folder / "memctl").write_text("#!/bin/sh\n")
    (folder / "memctl").chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:{own}")
    found = doctor("command")["command"]
    assert found["message"] == f"memctl on $PATH is {folder}/memctl, this one is {own}/memctl"
    monkeypatch.setenv("PATH", f"{own}:{folder}")
    assert "precedes" in doctor("command")["command"]["message"]


def test_a_misspelt_variable_is_told(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    found = doctor("environment")["environment"]
    assert found["state"] == "ok"
    assert (
        "an agent that is started without MEMORYD_DATA_DIR and MEMORYD_SOCKET uses another memory" in found["message"]
    )
    monkeypatch.setenv("MEMORYD_DATADIR", "/x")
    found = doctor("environment")["environment"]
    assert found["message"] == "MEMORYD_DATADIR: not a variable of memoryd; did you mean MEMORYD_DATA_DIR?"
    assert found["fix"] == "unset MEMORYD_DATADIR"


def test_every_variable_that_the_source_asks_for_is_known() -> None:
    folders = ("client", "daemon", "models", "scheduler")
    texts = [path.read_text() for folder in folders for path in (SOURCE / folder).rglob("*.py")]
    asked = {name for text in texts for name in re.findall(r"MEMORYD_[A-Z][A-Z_]*[A-Z]", text)}
    assert asked == installation.VARIABLES
