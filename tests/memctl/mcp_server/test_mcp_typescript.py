"""The official TypeScript client, as most hosts have it, against the real command and daemon."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from agents import MCP

from memoryd.client.programs.mcp.tools import TOOLS

CHECKOUT = Path(__file__).parents[3]
SDK = "@modelcontextprotocol/sdk@^1.20"
SCRIPT = Path(__file__).with_name("agent.mjs")


@pytest.fixture(scope="session")
def host() -> Path:
    """The script beside the SDK, which is fetched once and kept between runs."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node and npm are not installed; with them the TypeScript client is tried too")
    where = CHECKOUT / ".cache" / "typescript"
    where.mkdir(parents=True, exist_ok=True)
    if not (where / "node_modules/@modelcontextprotocol/sdk").is_dir():
        place = ["--prefix", str(where), "--cache", str(where / "fetched")]
        install = ["npm", "install", *place, "--no-audit", "--no-fund", "--silent", SDK]
        done = subprocess.run(install, capture_output=True, text=True, timeout=100)
        if done.returncode:
            pytest.skip(
                f"npm cannot fetch {SDK}; where the registry is reachable it is tried too: {done.stderr[-200:]}"
            )
    return Path(shutil.copy(SCRIPT, where / SCRIPT.name))


@pytest.mark.slow
def test_the_typescript_client_lists_and_calls_every_tool(host: Path, process: Any) -> None:
    environment = {**os.environ, "MEMORYD_SOCKET": str(process.socket), "MEMORYD_NAMESPACE": "acme/api"}
    done = subprocess.run(["node", host, *MCP], env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    out = msgspec.json.decode(done.stdout)
    assert (out["server"], out["tools"], out["errors"]) == ("memoryd", list(TOOLS), 0)
    assert set(out["texts"]) == set(TOOLS)
    assert all(out["texts"].values())
    assert out["found"] == ["The cache is Valkey"]
    assert out["wrong"][0] is True
    assert "1 or more" in out["wrong"][1]
    assert out["unknown"] == -32602
    assert (out["aborted"], out["afterwards"]) == ("cancelled", False)
    assert out["resources"] == ["memory://summary"]
    assert "The cache is Valkey" in out["summary"]
