"""What doctor says of the service under a real user manager."""

from typing import Any

import msgspec
import pytest
from user_manager import UserManager

from waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def asked(manager: UserManager) -> dict[str, Any]:
    """Return what doctor finds out about the service."""
    done = manager.memctl("doctor", "daemon", "service", "--json", check=False)
    return {finding["name"]: finding for finding in msgspec.json.decode(done.stdout)}


def test_a_service_that_runs_is_well(manager: UserManager) -> None:
    manager.memctl("service", "install")
    found = asked(manager)
    assert [finding["state"] for finding in found.values()] == ["ok", "ok"]
    assert found["service"]["message"].startswith("installed, active (running)")


def test_a_service_that_cannot_start_is_told_with_the_command_that_shows_why(manager: UserManager) -> None:
    manager.memctl("service", "install")
    manager.memctl("down")
    (manager.config / "memoryd" / "config.toml").write_text("[tiers]\nring = 'many'\n")
    assert manager.memctl("add", "never", check=False).returncode == 3
    wait_until(lambda: manager.shows("ActiveState") == "failed")
    found = asked(manager)
    assert (found["daemon"]["state"], found["service"]["state"]) == ("fail", "fail")
    assert found["service"]["message"] == "its socket was closed after too many failed starts"
    assert found["service"]["fix"] == "journalctl --user -u memoryd; memctl service install"
