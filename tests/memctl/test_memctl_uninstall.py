"""uninstall: what there is of memoryd in a home folder is shown and removed, and everything else is as it was before.

Hooks, unit files and the daemon are real; the home folder is a temporary one.
"""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from fake_daemon import Memctl

from configs import NO_JOBS, NO_MODEL
from hosting import Agent
from memoryd.client.errors import MemorydError
from memoryd.client.programs.hooks import spool
from memoryd.client.programs.hooks.hosts import HOSTS
from memoryd.client.programs.systemd.units import current_place, format_units
from memoryd.client.programs.uninstall.commands import _check_gone, _find_program_command
from memoryd.client.programs.uninstall.finding import Part
from memoryd.client.protocol import Status
from memoryd.client.transport import activation, paths

FOREIGN = Path(__file__).parents[1] / "data" / "hooks"

pytestmark = pytest.mark.slow


@pytest.fixture
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder in which agents are configured, with a folder of the user's beside them, and no memoryd yet."""
    made = folder / "home"
    (made / "notes").mkdir(parents=True)
    (made / "notes" / "tea.md").write_text("Green tea\n")
    for name in [name for name in os.environ if name.startswith(("MEMORYD_", "XDG_"))]:
        monkeypatch.delenv(name)
    for host in HOSTS.values():
        monkeypatch.delenv(host.home, raising=False)
    (folder / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "run"))
    monkeypatch.setenv("HOME", str(made))
    for agent, host in HOSTS.items():
        for name in host.files:
            sample = FOREIGN / agent / f"{Path(name).name}.foreign"
            if sample.exists():
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                (made / name).write_bytes(sample.read_bytes())
    return made


@pytest.fixture
def installed(home: Path, memctl: Memctl) -> Iterator[Path]:
    """The same home with all there can be of memoryd: hooks, units, a daemon with memories and a copy, a model."""
    config = home / ".config" / "memoryd" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"{NO_MODEL}\n{NO_JOBS}")
    model = home / ".cache" / "memoryd" / "models" / "mini"
    model.mkdir(parents=True)
    (model / "manifest.json").write_text("{}")
    (model.parent / ".lock").touch()
    (model.parent / ".api").mkdir()  # how models behind an API were calibrated
    (model.parent / ".api" / "0cf7b7798174f900.json").write_text("{}")
    for agent in HOSTS:
        assert memctl("hooks", "install", agent).code == 0
    memctl("add", "Ada drinks green tea", "--namespace", "ada")
    memctl("backup")
    units = activation.unit_folder()
    (units / activation.WANTED).parent.mkdir(parents=True)
    for name, text in format_units(current_place(paths.socket_path(), None, None, "")).items():
        (units / name).write_text(text)
    yield home
    if (home / ".local/share/memoryd/memoryd.lock").exists():
        memctl("down")


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder, and its folders that are empty."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
        if path.is_file() or (path.is_dir() and not any(path.iterdir()))
    }


def test_nothing_is_left_and_the_files_of_agents_are_as_they_were_to_the_byte(
    home: Path, request: pytest.FixtureRequest, memctl: Memctl
) -> None:
    before = contents(home)
    request.getfixturevalue("installed")
    pid = memctl("status", "--json").json["pid"]
    assert len(contents(home)) > len(before)
    done = memctl("uninstall", "--yes")
    assert done.out.startswith("Removed:\n  hooks ")
    assert "(1 memory, " in done.out
    after = contents(home)
    assert {name: data for name, data in after.items() if data} == before
    assert [name for name in after if "memoryd" in name] == [name for name in before if "memoryd" in name]
    assert not Path(f"/proc/{pid}").exists() or Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    assert list(Path(os.environ["XDG_RUNTIME_DIR"]).iterdir()) == []
    assert memctl("uninstall", "--yes").out.startswith("There is nothing to remove here but the program.\n")


def test_a_dry_run_and_a_run_that_nobody_confirms_name_everything_and_change_nothing(
    installed: Path, memctl: Memctl
) -> None:
    before = {name: data for name, data in contents(installed).items() if "memoryd.sqlite" not in name}
    report = memctl("uninstall", "--dry-run", "--json").json
    assert report["dry_run"] is True
    assert list(dict.fromkeys(part["what"] for part in report["parts"])) == [
        *("hooks", "service", "daemon", "socket", "data", "models", "settings")
    ]
    paths_of = {part["path"] for part in report["parts"]}
    assert {str(installed / name) for host in HOSTS.values() for name in host.files} <= paths_of
    assert str(installed / ".cache/memoryd/models") in paths_of
    assert "Would be removed:" in memctl("uninstall", "--dry-run").out
    refused = memctl("uninstall")
    assert refused.code == 2
    warning = "This removes memoryd with 1 memory; it cannot be undone. To take them along, run `memctl export` first."
    assert f"{warning} There is no terminal to ask on; give --yes" in refused.err
    assert {name: data for name, data in contents(installed).items() if "memoryd.sqlite" not in name} == before


def test_calls_of_hooks_that_were_not_sent_are_named_before_and_after(home: Path, memctl: Memctl) -> None:
    spool.append({"method": "end_session", "namespace": "", "session": "s"})
    told = "data      ~/.local/share/memoryd  (0 memories, 1 call of hooks not sent, "
    assert told in memctl("uninstall", "--dry-run").out
    assert told in memctl("uninstall", "--yes").out
    assert spool.count_waiting() == 0


def test_the_data_can_be_kept_and_is_found_by_a_later_installation(installed: Path, memctl: Memctl) -> None:
    report = memctl("uninstall", "--keep-data", "--yes", "--json").json
    assert {part["what"] for part in report["parts"]} == {"hooks", "service", "daemon", "socket", "models"}
    assert not (installed / ".cache" / "memoryd").exists()
    assert not (installed / ".claude/settings.json.memoryd.bak").exists()
    assert (installed / ".config/memoryd/config.toml").exists()
    assert memctl("uninstall", "--keep-data", "--yes").out.startswith(
        "There is nothing to remove here but the program.\nStays:\n"
        "  ~/.local/share/memoryd: the data, 1 memory, 1 copy in backups/\n  ~/.config/memoryd: the settings\n"
    )
    assert memctl("search", "tea", "--json").json[0]["content"] == "Ada drinks green tea"


def test_what_memoryd_did_not_write_stays_and_is_named(installed: Path, memctl: Memctl) -> None:
    own = [".local/share/memoryd/mine.sqlite", ".config/memoryd/key", ".cache/memoryd/models/mine/weights"]
    for name in own:
        (installed / name).parent.mkdir(exist_ok=True)
        (installed / name).write_text("mine")
    (activation.unit_folder() / activation.SERVICE_UNIT).write_text("[Service]\nExecStart=/usr/bin/true\n")
    remains = memctl("uninstall", "--yes", "--json").json["remains"]
    unit = str(activation.unit_folder() / activation.SERVICE_UNIT)
    named = [str(installed / name) for name in (*own[:2], ".cache/memoryd/models/mine")]
    assert sorted(one["name"] for one in remains) == sorted([unit, *named])
    assert {(installed / name).read_text() for name in own} == {"mine"}
    assert Path(unit).exists()


def test_what_was_written_into_a_file_of_an_agent_meanwhile_stays_and_no_copy_of_it_is_left(
    installed: Path, memctl: Memctl
) -> None:
    path = installed / ".claude" / "settings.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "model": "another"}))
    memctl("uninstall", "--yes")
    kept = json.loads(path.read_text())
    assert kept["model"] == "another"
    assert "memctl" not in path.read_text()
    assert list(installed.rglob("*.memoryd.bak")) == []


def test_hooks_of_projects_go_too(home: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch) -> None:
    config = home / ".config" / "memoryd" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"{NO_MODEL}\n{NO_JOBS}")
    project = home / "api"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    memctl("add", "The API caches in Valkey")  # which makes the project known
    memctl("hooks", "install", "cursor", "--project", ".")
    assert (project / ".cursor" / "hooks.json").exists()
    memctl("uninstall", "--yes")
    assert not (project / ".cursor" / "hooks.json").exists()


def test_hooks_of_a_project_that_no_daemon_ever_met_go_too(
    home: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = home / "api"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    memctl("hooks", "install", "cursor", "--project", ".")
    memctl("hooks", "install", "gemini", "--project", ".", "--dry-run")
    monkeypatch.chdir(home)
    report = memctl("uninstall", "--yes", "--json").json
    assert report["remains"] == []
    assert [part["path"] for part in report["parts"]] == [
        *(str(project / ".cursor" / name) for name in ("hooks.json", "mcp.json")),
        str(home / ".local/share/memoryd"),
    ]
    assert [path.name for path in project.rglob("*")] == [".git"]


def test_a_file_of_an_agent_that_cannot_be_changed_stays_and_the_rest_goes(installed: Path, memctl: Memctl) -> None:
    (installed / ".cursor" / "hooks.json").write_text('{"mine": broken')
    path = installed / ".gemini" / "settings.json"
    commented = path.read_text().replace("{", "{\n  // a comment of mine", 1)
    path.write_text(commented)
    done = memctl("uninstall", "--yes", "--json")
    assert done.code == 1
    report = done.json
    assert report["remains"] == [
        {
            "name": str(installed / ".cursor" / "hooks.json.memoryd.bak"),
            "reason": "how that file was before memoryd; delete it if you do not need it",
            "unfinished": False,
        },
        {
            "name": str(path),
            "reason": "it mentions memctl and cannot be changed: it is not the JSON that it should be"
            " (a comment in line 2); take that out by hand;"
            " settings.json.memoryd.bak beside it is how it was before memoryd",
            "unfinished": True,
        },
    ]
    assert {part["what"] for part in report["parts"]} > {"hooks", "daemon", "data"}
    assert not (installed / ".local/share/memoryd").exists()
    assert path.read_text() == commented


def test_folders_that_hooks_made_go_and_empty_ones_that_were_there_stay(
    home: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(home / "new"))
    (home / "new" / "api" / ".cursor").mkdir(parents=True)
    (home / "new" / ".copilot").mkdir()
    before = contents(home)
    for agent in HOSTS:
        memctl("hooks", "install", agent)
        memctl("hooks", "install", agent, "--project", str(home / "new" / "api"))
    assert memctl("hooks", "uninstall", "claude-code").code == 0
    assert not (home / "new" / ".claude").exists()
    memctl("uninstall", "--yes")
    assert contents(home) == before


def test_a_project_that_had_hooks_and_is_gone_is_named(
    home: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("shop", "other"):
        (home / name).mkdir()
        memctl("hooks", "install", "gemini", "--project", str(home / name))
    memctl("hooks", "uninstall", "gemini", "--project", str(home / "other"))
    (home / "other").rmdir()
    (home / "shop").rename(home / "moved")
    line = "  ~/shop: it had hooks and is gone; if you moved it, run `memctl uninstall` in it as well"
    for options in (("--dry-run",), ("--keep-data", "--yes")):
        assert f"{line}\n" in memctl("uninstall", *options).out
    out = memctl("uninstall", "--yes").out
    assert f"{line}\n" in out
    assert "~/other" not in out
    monkeypatch.chdir(home / "moved")
    memctl("uninstall", "--yes")
    assert [path for path in (home / "moved").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("options", [(), ("--keep-data",)])
def test_hooks_that_are_still_called_bring_nothing_back(
    installed: Path, memctl: Memctl, options: tuple[str, ...]
) -> None:
    memctl("uninstall", "--yes", *options)
    before = contents(installed)
    agent = Agent("claude-code", installed.parent, installed / "notes")
    agent.environment = dict(os.environ)
    for event, fields in (
        ("session-start", {"source": "startup"}),
        ("session-start", {"source": "compact"}),
        ("prompt", {"prompt": "We deploy on Tuesdays"}),
        ("tool", {"tool_input": {"file_path": "/tea.md"}}),
        ("stop", {"last_assistant_message": "Noted."}),
        ("session-end", {}),
    ):
        done = agent.hook(event, **fields)
        assert (done.code, done.out, done.err) == (0, "", "")
    assert contents(installed) == before


@pytest.mark.parametrize("words", [("up",), ("hooks", "install", "claude-code")])
def test_hooks_work_again_after_a_command_of_a_person(installed: Path, memctl: Memctl, words: tuple[str, ...]) -> None:
    memctl("uninstall", "--keep-data", "--yes")
    agent = Agent("claude-code", installed.parent, installed / "notes")
    agent.environment = dict(os.environ)
    agent.hook("prompt", prompt="We deploy on Mondays")
    memctl(*words)
    agent.hook("prompt", prompt="We deploy on Tuesdays")
    agent.hook("session-start", source="startup")
    out = memctl("export", "--reach", "all").out
    assert ("Mondays" in out, "Tuesdays" in out) == (False, True)


def test_another_memory_beside_the_default_one_is_refused_with_what_to_do(
    installed: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = installed / ".local/share/memoryd"
    before = {name: data for name, data in contents(installed).items() if "memoryd/memoryd." not in name}
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("MEMORYD_DATA_DIR", str(installed / "second"))
        refused = memctl("uninstall", "--yes")
    assert refused.code == 1
    assert f"{installed / 'second'} is another memory than the default one in {default}" in refused.err
    assert "run `env -u MEMORYD_DATA_DIR memctl uninstall`" in refused.err
    assert {name: data for name, data in contents(installed).items() if "memoryd/memoryd." not in name} == before


def test_without_an_installed_daemon_it_says_how_memories_can_be_exported(
    home: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.client.programs.uninstall.finding.is_installed", lambda: False)
    monkeypatch.setattr("memoryd.client.programs.uninstall.commands.is_installed", lambda: False)
    (home / ".local/share/memoryd").mkdir(parents=True)
    (home / ".local/share/memoryd/memoryd.log").touch()
    asked = memctl("uninstall").err
    assert "To take them along, install memoryd again with the extra daemon: pip install " in asked
    assert "; then run `memctl export`." in asked


def test_files_that_another_installation_wrote_into_come_back_to_the_byte(
    home: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(home)
    for agent in HOSTS:
        memctl("hooks", "install", agent)
    monkeypatch.setattr("memoryd.client.programs.hooks.installing.own_command", lambda: ["/opt/other/bin/memctl"])
    notes = {part["note"] for part in memctl("uninstall", "--yes", "--json").json["parts"] if part["what"] == "hooks"}
    assert notes == {"as it was before, to the byte", "deleted: all of it is memoryd's"}
    assert {name: data for name, data in contents(home).items() if data} == before


def test_a_daemon_that_another_uninstall_has_stopped_meanwhile_is_no_error(
    installed: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = msgspec.json.decode(memctl("status", "--json").out, type=Status)
    memctl("down")
    monkeypatch.setattr("memoryd.client.programs.uninstall.finding.restart.get_status", lambda args: status)
    assert memctl("uninstall", "--yes").code == 0
    assert not (installed / ".local/share/memoryd").exists()


def test_a_daemon_that_an_agent_has_started_meanwhile_is_reported(folder: Path) -> None:
    part = Part("socket", folder / "again", lambda: None)
    _check_gone([part])
    with socket.socket(socket.AF_UNIX) as again:
        again.bind(str(part.path))
        with pytest.raises(MemorydError, match="End its sessions"):
            _check_gone([part])


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/ada/.local/share/pipx/venvs/memoryd", "pipx uninstall memoryd"),
        ("/home/ada/.local/share/uv/tools/memoryd", "uv tool uninstall memoryd"),
    ],
)
def test_the_command_that_removes_the_program_is_that_of_the_tool_that_installed_it(
    prefix: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _find_program_command().endswith("python -m pip uninstall memoryd")
    monkeypatch.setattr("sys.prefix", prefix)
    assert _find_program_command() == command


def test_a_data_folder_with_the_users_own_folders_loses_only_what_is_memoryds(
    installed: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    memctl("down")
    shared = installed / "mixed"
    (installed / ".local/share/memoryd").rename(shared)
    (installed / "notes").rename(shared / "notes")
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(shared))
    memctl("uninstall", "--yes")
    assert contents(shared) == {"notes/tea.md": b"Green tea\n"}
