"""How a server is connected to: with TLS that is checked, no password in the address, nobody where it is forbidden."""

from typing import Any

import psycopg
import pytest

from memoryd.client.errors import Invalid, Unavailable
from memoryd.daemon.config import Config, NetworkConfig
from memoryd.daemon.core.core import Core
from memoryd.daemon.shared import line, server


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What PostgreSQL's library is asked for, without a connection."""
    found: dict[str, Any] = {}

    def connect(**given: Any) -> None:
        found.update(given)
        raise psycopg.OperationalError("there is no server")

    monkeypatch.setattr(psycopg, "connect", connect)
    return found


@pytest.mark.parametrize(
    ("address", "tls"),
    [
        ("host=db.example dbname=team", ("verify-full", "system")),
        ("host=db.example sslmode=disable", ("disable", None)),
        ("host=db.example sslrootcert=/own.pem", ("verify-full", "/own.pem")),
        ("host=/run/postgresql,db.example", ("verify-full", "system")),
        ("dbname=team", ("verify-full", "system")),
    ],
)
def test_the_certificate_is_checked_unless_the_address_says_otherwise(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch, address: str, tls: tuple[str | None, str | None]
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/all.pem")
    with pytest.raises(Unavailable, match="there is no server"):
        server.connect(address, "/the/passfile")
    assert (asked.get("sslmode"), asked.get("sslrootcert")) == tls
    assert asked["passfile"] == "/the/passfile"
    assert asked["prepare_threshold"] is None, "a pooler may lose prepared statements"


def test_an_address_holds_no_password(asked: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="passfile"):
        server.connect("host=db.example password=x")
    assert asked == {}


def test_a_machine_that_is_to_stay_offline_connects_to_itself_alone(
    core: Core, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "config", Config(network=NetworkConfig(offline=True)))
    elsewhere = ["host=db.example", "hostaddr=203.0.113.5", "host=localhost hostaddr=203.0.113.5", "service=team"]
    for address in (*elsewhere, "host=/run/postgresql,db.example"):
        with pytest.raises(Unavailable, match="stay offline"):
            line.open_server(core, address, "")
    monkeypatch.setenv("PGHOST", "db.example")
    with pytest.raises(Unavailable, match="stay offline"):
        line.open_server(core, "dbname=team", "")
    monkeypatch.delenv("PGHOST")
    assert asked == {}
    for address in ("host=127.0.0.1", "host=/run/postgresql", "dbname=team", "hostaddr=::1"):
        with pytest.raises(Unavailable, match="there is no server"):
            line.open_server(core, address, "")
