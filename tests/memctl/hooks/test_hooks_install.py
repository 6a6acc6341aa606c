"""hooks install, uninstall, status: what becomes of the files of coding agents."""

import json
import os
import tomllib
from pathlib import Path

import pytest
from fake_daemon import Memctl

from each import each
from memoryd.client.errors import Conflict
from memoryd.client.programs.hooks import installing, tomltext
from memoryd.client.programs.hooks.hosts import HOSTS

CHECKOUT = Path(__file__).parents[3]
DATA = CHECKOUT / "tests" / "data" / "hooks"
COMMAND = ["/opt/memory tools/bin/memctl"]
MAKE = "run: python tests/data/hooks/make.py, and look at the difference"
FILES = {agent: tuple(host.files) for agent, host in HOSTS.items()}
EACH = [(agent, name) for agent, names in FILES.items() for name in names]
WHOLE = [(agent, name) for agent, name in EACH if HOSTS[agent].files[name] == "plugin"]
MIXED = [one for one in EACH if one not in WHOLE]  # with entries of the user's beside ours


@pytest.fixture
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without any agent, and a memctl of a fixed place with a blank in it."""
    made = folder / "home"
    made.mkdir()
    monkeypatch.setenv("HOME", str(made))
    for host in HOSTS.values():
        monkeypatch.delenv(host.home, raising=False)
    monkeypatch.setattr(installing, "own_command", lambda: COMMAND)
    return made


def golden(agent: str, name: str, kind: str) -> bytes:
    return (DATA / agent / f"{Path(name).name}.{kind}").read_bytes()


def mixed(agent: str) -> list[str]:
    return [name for owner, name in MIXED if owner == agent]


def laid_out(home: Path, kind: str = "foreign") -> None:
    for agent, name in MIXED:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(golden(agent, name, kind))


def contents(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


@each("agent", HOSTS)
def test_each_agent_has_hooks_a_server_and_golden_files_and_is_named_where_users_look(agent: str) -> None:
    host = HOSTS[agent]
    for held in filter(None, (host.files, host.project_files)):
        parts = set(" ".join(held.values()).replace("plugin", "hooks server").split())
        assert {"hooks", "server"} - parts == set(), f"say which file of {agent!r} in HOSTS holds each of these"
    named = [f"{name}.fresh" for name in FILES[agent]]
    named += [f"{name}.{kind}" for name in mixed(agent) for kind in ("foreign", "installed")]
    paths = [DATA / agent / Path(name).name for name in named]
    missing = [str(path.relative_to(CHECKOUT)) for path in paths if not path.exists()]
    assert missing == [], "write FILE.foreign, as a user of the agent may have it, then " + MAKE
    text = (CHECKOUT / "docs/agents.md").read_text(encoding="utf-8")
    assert f"| `{agent}`: {host.title} |" in text, f"say in the table of docs/agents.md what works in {host.title}"


def test_the_files_are_where_the_agents_read_them() -> None:
    assert FILES["claude-code"] == (".claude/settings.json", ".claude.json")
    assert FILES["codex"] == (".codex/hooks.json", ".codex/config.toml")
    assert FILES["cursor"] == (".cursor/hooks.json", ".cursor/mcp.json")
    assert FILES["gemini"] == (".gemini/settings.json",)
    assert FILES["cline"] == (".cline/plugins/memoryd.js", ".cline/data/settings/cline_mcp_settings.json")
    assert FILES["copilot"] == (".copilot/hooks/memoryd.json", ".copilot/mcp-config.json")
    assert FILES["opencode"] == (".config/opencode/plugins/memoryd.js",)


@pytest.mark.parametrize("agent", HOSTS)
def test_where_there_is_no_file_the_golden_ones_are_made_and_uninstall_deletes_them(
    agent: str, home: Path, memctl: Memctl
) -> None:
    assert memctl("hooks", "install", agent).code == 0
    assert contents(home) == {name: golden(agent, name, "fresh") for name in sorted(FILES[agent])}, MAKE
    assert {(home / name).stat().st_mode & 0o777 for name in FILES[agent]} == {0o600}
    assert memctl("hooks", "uninstall", agent).code == 0
    assert contents(home) == {}


@pytest.mark.parametrize("agent", HOSTS)
def test_foreign_entries_stay_and_uninstall_restores_every_byte(agent: str, home: Path, memctl: Memctl) -> None:
    laid_out(home)
    before = contents(home)
    assert memctl("hooks", "install", agent).code == 0
    for name in mixed(agent):
        assert (home / name).read_bytes() == golden(agent, name, "installed"), MAKE
        assert (home / f"{name}.memoryd.bak").read_bytes() == before[name]
    installed = contents(home)
    twice = memctl("hooks", "install", agent)
    assert twice.out.splitlines() == [f"unchanged  ~/{name}" for name in FILES[agent]]
    assert contents(home) == installed
    assert memctl("hooks", "uninstall", agent).code == 0
    assert contents(home) == before
    again = memctl("hooks", "uninstall", agent)
    assert again.out.splitlines() == [f"not installed  ~/{name}" for name in FILES[agent]]
    assert again.err == ""
    assert contents(home) == before


def test_an_empty_object_of_the_users_stays_after_the_agent_wrote_the_file_anew(home: Path, memctl: Memctl) -> None:
    path = home / ".claude.json"
    path.write_text('{"mcpServers": {}, "hooks": {}}')
    assert memctl("hooks", "install", "claude-code").code == 0
    path.write_text(json.dumps({**json.loads(path.read_text()), "numStartups": 2}))
    done = memctl("hooks", "uninstall", "claude-code")
    assert json.loads(path.read_text()) == {"mcpServers": {}, "hooks": {}, "numStartups": 2}
    assert "Memories and the daemon stay" in done.err


@each(("agent", "name"), MIXED)
def test_golden_files_say_what_the_foreign_ones_said_and_no_less(agent: str, name: str) -> None:
    load = tomllib.loads if name.endswith(".toml") else json.loads

    def holds(whole: object, part: object) -> bool:
        if isinstance(part, dict) and isinstance(whole, dict):
            return all(key in whole and holds(whole[key], value) for key, value in part.items())
        if isinstance(part, list) and isinstance(whole, list):
            return whole[: len(part)] == part
        return whole == part

    foreign, installed = (load(golden(agent, name, kind).decode()) for kind in ("foreign", "installed"))
    assert holds(installed, foreign)


@pytest.mark.parametrize("agent", HOSTS)
def test_what_was_changed_since_stays_and_only_our_entries_go(agent: str, home: Path, memctl: Memctl) -> None:
    laid_out(home)
    memctl("hooks", "install", agent)
    for name in mixed(agent):
        path = home / name
        text = path.read_text()
        path.write_text(
            text + "\n[later]\nx = 1\n" if name.endswith(".toml") else text.replace("{", '{ "later": 1,', 1)
        )
    assert memctl("hooks", "uninstall", agent).code == 0
    for name in mixed(agent):
        text, was = (home / name).read_text(), golden(agent, name, "foreign").decode()
        assert "memctl" not in text
        if name.endswith(".toml"):
            assert tomllib.loads(text) == {**tomllib.loads(was), "later": {"x": 1}}
        else:
            assert json.loads(text) == {**json.loads(was), "later": 1}


@pytest.mark.parametrize(("agent", "name"), EACH)
@each("damage", ["{ // a comment\n}", "[1]\nx", "\ufeff{}", '{"a": 1,}', "\x00"])
def test_a_file_that_does_not_parse_is_left_and_the_block_is_printed(
    agent: str, name: str, damage: str, home: Path, memctl: Memctl
) -> None:
    laid_out(home)
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_text(damage)
    before = contents(home)
    refused = memctl("hooks", "install", agent)
    assert (refused.code, contents(home)) == (1, before)
    assert "Nothing was changed." in refused.err
    assert str(home / name) in refused.err
    assert "memctl" in refused.out
    assert memctl("hooks", "uninstall", agent).code == 1
    standing = json.loads(memctl("hooks", "status", "--json").out)["files"]
    assert next(one["state"] for one in standing if one["path"] == str(home / name)).startswith("unreadable: it is not")
    assert contents(home) == before


@pytest.mark.parametrize(
    "text",
    [
        '{"hooks": []}',
        '{"hooks": {"SessionStart": {}}}',
        "[]",
        '"text"',
        "\xff".encode("latin-1"),
    ],
)
def test_a_file_of_another_shape_is_refused(text: str | bytes, home: Path, memctl: Memctl) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    before = contents(home)
    assert memctl("hooks", "install", "claude-code").code == 1
    assert contents(home) == before


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        ("cursor", '{"mcpServers": {"memoryd": {"command": "other"}}}'),
        ("codex", '[mcp_servers.memoryd]\ncommand = "other"\n'),
        ("codex", 'mcp_servers = { a = { command = "b" } }\n'),
        ("codex", '[[mcp_servers]]\nname = "other"\n'),
    ],
)
def test_a_server_of_the_same_name_that_is_not_ours_is_left(agent: str, text: str, home: Path, memctl: Memctl) -> None:
    path = home / {"cursor": ".cursor/mcp.json", "codex": ".codex/config.toml"}[agent]
    path.parent.mkdir()
    path.write_text(text)
    before = contents(home)
    assert memctl("hooks", "install", agent).code == 1
    assert memctl("hooks", "uninstall", agent).code == 0
    assert contents(home) == before


@pytest.mark.parametrize("mark", [tomltext.BEGIN, tomltext.END])
def test_a_block_that_lost_a_mark_is_not_called_removed_and_its_copy_stays(
    mark: str, home: Path, memctl: Memctl
) -> None:
    laid_out(home)
    memctl("hooks", "install", "codex")
    path = home / ".codex/config.toml"
    path.write_text(path.read_text().replace(f"{mark}\n", ""))
    before = contents(home)
    done = memctl("hooks", "uninstall", "codex")
    assert done.code == 1
    assert "memoryd's lines are not between their marks any more; take them out by hand" in done.err
    assert contents(home) == before


def test_a_dry_run_and_print_change_nothing(home: Path, memctl: Memctl) -> None:
    laid_out(home)
    before = contents(home)
    dry = memctl("hooks", "install", "gemini", "--dry-run")
    assert '+    "memoryd": {' in dry.out
    assert "Nothing was changed" in dry.out
    printed = memctl("hooks", "install", "gemini", "--print")
    assert json.loads(printed.out.split("\n", 1)[1])["mcpServers"]["memoryd"]["args"] == ["mcp"]
    assert contents(home) == before


def test_a_newer_place_of_memctl_replaces_the_older_entries(
    home: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid_out(home)
    before = contents(home)
    monkeypatch.setattr(
        installing, "own_command", lambda: ["/usr/bin/python3", "-P", "-m", "memoryd.client.programs.memctl"]
    )
    for agent in HOSTS:
        memctl("hooks", "install", agent)
    assert b"/usr/bin/python3" in contents(home)[".codex/config.toml"]
    monkeypatch.setattr(installing, "own_command", lambda: COMMAND)
    assert "outdated" in memctl("hooks", "status").out
    for agent, names in FILES.items():
        memctl("hooks", "install", agent)
        kinds = {name: "installed" if name in mixed(agent) else "fresh" for name in names}
        assert {name: (home / name).read_bytes() for name in names} == {
            name: golden(agent, name, kind) for name, kind in kinds.items()
        }
        memctl("hooks", "uninstall", agent)
    assert contents(home) == before


def test_a_link_is_followed_and_the_mode_kept(home: Path, memctl: Memctl) -> None:
    real = home / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_bytes(golden("claude-code", "settings.json", "foreign"))
    real.chmod(0o640)
    (home / ".claude").mkdir()
    link = home / ".claude" / "settings.json"
    link.symlink_to(real)
    memctl("hooks", "install", "claude-code")
    assert link.is_symlink()
    assert real.read_bytes() == golden("claude-code", "settings.json", "installed")
    copy = real.with_name("claude.json.memoryd.bak")
    assert [path.stat().st_mode & 0o777 for path in (real, copy)] == [0o640, 0o640]
    memctl("hooks", "uninstall", "claude-code")
    assert link.is_symlink()
    assert real.read_bytes() == golden("claude-code", "settings.json", "foreign")


def test_a_project_has_files_of_its_own_that_no_team_shares(
    home: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = home / "api"
    project.mkdir()
    monkeypatch.chdir(project)
    memctl("hooks", "install", "claude-code", "--project", str(project))
    assert sorted(contents(project)) == [".claude/settings.local.json", ".mcp.json"]
    found = json.loads(memctl("hooks", "status", "--json").out)
    states = {one["state"] for one in found["files"] if one["path"].startswith(f"{project}/")}
    assert states == {"installed"}
    memctl("hooks", "uninstall", "claude-code", "--project", str(project))
    assert contents(project) == {}


def test_a_file_that_changes_at_the_last_moment_is_not_overwritten(folder: Path) -> None:
    path = folder / "settings.json"
    path.write_text("{}")
    with pytest.raises(Conflict, match="changed by another program"):
        installing.replace_file(path, b"[]", b"new", installing.PRIVATE)
    assert path.read_text() == "{}"
    assert os.listdir(folder) == ["settings.json"]


def test_our_entry_in_a_group_of_the_user_goes_and_the_others_stay(home: Path, memctl: Memctl) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    ours = {"type": "command", "command": "memctl hook stop --agent claude-code"}
    theirs = [{"type": "command", "command": "echo memctl hook"}, {"type": "command", "command": "memctl hooks status"}]
    path.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [theirs[0], ours, theirs[1]]}, {"hooks": []}]}}))
    memctl("hooks", "uninstall", "claude-code")
    assert json.loads(path.read_text()) == {"hooks": {"Stop": [{"hooks": theirs}, {"hooks": []}]}}
