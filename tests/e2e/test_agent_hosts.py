"""The agents themselves, as their makers publish them: installed hooks run, and a memory reaches the model's request.

Only the model is not real: its API runs in the test. Cursor cannot be had from a package index.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from memoryd.client.programs.hooks.hosts import HOSTS
from memoryd.client.programs.memctl.running import run
from model_api import ModelApi, model_api
from waiting import wait_until
from workbench import Process

CHECKOUT = Path(__file__).parents[2]
PACKAGES = {
    "claude": "@anthropic-ai/claude-code@^2.1",
    "codex": "@openai/codex@^0.169",
    "gemini": "@google/gemini-cli@^0.61",
    "opencode": "opencode-ai@^1.18",
    "copilot": "@github/copilot@^1.0.102",
    "cline": "cline@^3.0.65",
}
MEMORY = "Run the billing migrations with --lock-timeout 5s, else the deploy hangs"
ANSWER = "I have deployed the billing service at noon and told the whole team about it"
QUESTION = "How do I run the billing migrations before the deploy?"

Asking = Callable[[ModelApi, Path], tuple[list[str], dict[str, str]]]


def command(name: str) -> str:
    """Return the command of an agent: of this machine, else fetched once and kept between runs."""
    if found := shutil.which(name):
        return found
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip(f"{name} is not installed; with it, or with node and npm to fetch it, the agent itself is tried")
    where = CHECKOUT / ".cache" / "agents" / name
    program = where / "node_modules" / ".bin" / name
    where.mkdir(parents=True, exist_ok=True)
    with open(where / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be in the middle of fetching it
        if not program.exists():
            place = ["--prefix", str(where), "--cache", str(where / "fetched")]
            done = subprocess.run(
                ["npm", "install", *place, "--no-audit", "--no-fund", "--silent", PACKAGES[name]],
                capture_output=True,
                text=True,
                timeout=300,
            )
            if done.returncode or not program.exists():
                pytest.skip(
                    f"npm cannot fetch {PACKAGES[name]}; where it can, the agent is tried: {done.stderr[-200:]}"
                )
    return str(program)


def _claude(api: ModelApi, home: Path) -> tuple[list[str], dict[str, str]]:
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text('{"permissions": {"allow": []}}\n')
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    key = {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": api.url}
    return [command("claude"), "-p", QUESTION], {**key, **quiet}


def _codex(api: ModelApi, home: Path) -> tuple[list[str], dict[str, str]]:
    provider = f'[model_providers.test]\nname = "test"\nbase_url = "{api.url}/v1"\nwire_api = "responses"\n'
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(f'model = "test"\nmodel_provider = "test"\n{provider}')
    trusted = ["--skip-git-repo-check", "--dangerously-bypass-hook-trust"]  # a person is asked once, see /hooks
    return [command("codex"), "exec", *trusted, QUESTION], {}


def _gemini(api: ModelApi, home: Path) -> tuple[list[str], dict[str, str]]:
    (home / ".gemini").mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings, indent=2))
    environment = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": api.url}
    return [command("gemini"), "--skip-trust", "-m", "gemini-2.5-flash", "-p", QUESTION], environment


def _opencode(api: ModelApi, home: Path) -> tuple[list[str], dict[str, str]]:
    options = {"provider": {"anthropic": {"options": {"apiKey": "none", "baseURL": f"{api.url}/v1"}}}}
    (home / ".config" / "opencode").mkdir(parents=True)
    (home / ".config" / "opencode" / "opencode.json").write_text(json.dumps({**options, "autoupdate": False}))
    asking = [command("opencode"), "run", "--model", "anthropic/claude-sonnet-4-5"]
    return [*asking, *QUESTION.split()], {"OPENCODE_DISABLE_MODELS_FETCH": "1"}  # it quotes a word with blanks


def _copilot(api: ModelApi, home: Path) -> tuple[list[str], dict[str, str]]:
    provider = {"TYPE": "anthropic", "BASE_URL": api.url, "API_KEY": "none"}
    environment = {f"COPILOT_PROVIDER_{name}": value for name, value in provider.items()}
    return [command("copilot"), "--model", "claude-sonnet-4.5", "-p", QUESTION], {"COPILOT_OFFLINE": "1", **environment}


def _cline(api: ModelApi, home: Path) -> tuple[list[str], dict[str, str]]:
    script = '"$0" auth -p openai-compatible -k none -m m -b "$1"; "$0" -P openai-compatible -m m "$2"; "$0" hub stop'
    patient = {"CLINE_PLUGIN_IMPORT_TIMEOUT_MS": "60000"}  # else it goes on without one after four seconds
    return ["sh", "-c", script, command("cline"), f"{api.url}/v1", QUESTION], patient


AGENTS: dict[str, Asking] = {
    "claude-code": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
    "copilot": _copilot,
    "cline": _cline,
}


def move_home(real: Process, home: Path) -> None:
    """Start the daemon again with the agent's home, below which it reads files of sessions."""
    real.stop()
    real.environment["HOME"] = str(home)
    real.start()


class Installed(NamedTuple):
    """An agent with the hooks in a home of its own, in the project `billing`."""

    words: list[str]  # they ask QUESTION
    environment: dict[str, str]
    place: Path

    def say(self, text: str, *options: str) -> str:
        """Run a session with one prompt; return what the agent printed."""
        words = [text if word == QUESTION else word for word in self.words]
        done = subprocess.run(
            [*words, *options],
            cwd=self.place,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=300,
        )
        return done.stdout.decode() or done.stderr.decode()[-2000:]


def install(agent: str, api: ModelApi, real: Process, monkeypatch: pytest.MonkeyPatch) -> Installed:
    home, place = real.folder / "home", real.folder / "billing"
    home.mkdir()
    (place / ".git").mkdir(parents=True)
    move_home(real, home)
    words, environment = AGENTS[agent](api, home)
    for name in {name for host in HOSTS.values() for name in (host.home, host.keeps[0].partition("/")[0])}:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    assert run(["hooks", "install", agent]) == 0
    asking = {**os.environ, **real.environment, **environment, "HOME": str(home), "PWD": str(place)}
    return Installed(words, asking, place)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("agent", AGENTS)
def test_the_agent_itself_asks_its_model_with_the_memory_and_its_answer_is_noted(
    agent: str, real: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    with model_api(ANSWER) as api:
        installed = install(agent, api, real, monkeypatch)
        with real.client("billing") as client:
            client.add(MEMORY, type="lesson")
        assert ANSWER in installed.say(QUESTION)
        assert any("--lock-timeout 5s" in asked and QUESTION in asked for asked in api.asked)
    with real.client("billing") as client:
        wait_until(lambda: client.stats().methods["end_session"].calls >= 1)
        assert {turn.content for turn in client.turns()} <= {QUESTION, ANSWER}

        def is_noted() -> bool:  # a hook that was ended before the reply came sends again, with the same id
            flows = client.tiers().flows
            return flows["observed"] - flows.get("skipped: observed before", 0) == 2

        wait_until(is_noted)  # the session's file is read after the hook was answered
        assert not (real.data / "hooks.spool").exists()
    assert run(["hooks", "uninstall", agent]) == 0


# How an agent installs and removes a plugin.
PLUGINS = {"claude-code": ("install", "uninstall"), "codex": ("add", "remove")}
SERVERS = {"claude-code": "plugin:memoryd:memoryd: memctl mcp - ✔ Connected", "codex": "memoryd memctl mcp"}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("agent", PLUGINS)
def test_a_plugin_works_from_its_folder_and_can_be_taken_out(agent: str, real: Process) -> None:
    home, place = real.folder / "home", real.folder / "billing"
    home.mkdir()
    (place / ".git").mkdir(parents=True)
    move_home(real, home)
    with model_api(ANSWER) as api:
        words, environment = AGENTS[agent](api, home)
        install, remove = PLUGINS[agent]
        path = f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}"
        environment = {
            **os.environ,
            **real.environment,
            **environment,
            "HOME": str(home),
            "PWD": str(place),
            "PATH": path,
        }
        installed = Installed(words, environment, place)

        def manage(*arguments: str) -> str:
            done = subprocess.run(
                [words[0], *arguments], env=environment, cwd=place, check=True, capture_output=True, text=True
            )
            return done.stdout

        manage("plugin", "marketplace", "add", str(CHECKOUT / "client/programs/hooks/plugins" / agent))
        manage("plugin", install, "memoryd@memoryd")
        assert SERVERS[agent] in " ".join(manage("mcp", "list").split())
        with real.client("billing") as client:
            client.add(MEMORY, type="lesson")
            assert ANSWER in installed.say(QUESTION)
            assert any("--lock-timeout 5s" in asked for asked in api.asked)
            wait_until(lambda: {turn.content for turn in client.turns()} == {QUESTION, ANSWER})
        manage("plugin", remove, "memoryd@memoryd")
        manage("plugin", "marketplace", "remove", "memoryd")
        assert "memoryd" not in manage("mcp", "list")
        api.asked.clear()
        assert ANSWER in installed.say("Who are you?")
        assert not any("--lock-timeout" in asked for asked in api.asked)
    settings = {"claude-code": ".claude/settings.json", "codex": ".codex/config.toml"}[agent]
    assert "memoryd" not in (home / settings).read_text()
