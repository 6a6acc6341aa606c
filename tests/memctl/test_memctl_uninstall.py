"""uninstall: what there is of memoryd in a home folder is shown and removed, and everything else is as it was before.

Hooks, unit files and the daemon are real; the home folder is a temporary one.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import msgspec
import pytest
from fake_daemon import Memctl

from configs import NO_JOBS, NO_MODEL
from hosting import Agent
from memoryd.client.agents.hooks import spool
from memoryd.client.agents.hooks.hosts import HOSTS
from memoryd.client.errors import MemorydError
from memoryd.client.leaving.commands import _check_gone, _find_program_command
from memoryd.client.leaving.finding import Part
from memoryd.client.protocol import Status
from memoryd.client.systemd.units import current_place, format_units
from memoryd.client.transport import activation, paths
from memoryd.models.folder import default_models_dir

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


def test_a_dry_run_names_everything_and_changes_nothing(installed: Path, memctl: Memctl) -> None:
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
    assert {name: data for name, data in contents(installed).items() if "memoryd.sqlite" not in name} == before


def test_calls_of_hooks_that_were_not_sent_are_named_before_and_after(home: Path, memctl: Memctl) -> None:
    spool.append({"method": "end_session", "namespace": "", "session": "s"})
    told = "data      ~/.local/share/memoryd  (0 memories, 1 call of hooks not sent, "
    assert told in memctl("uninstall", "--dry-run").out
    assert told in memctl("uninstall", "--yes").out
    assert spool.count_waiting() == 0


def test_without_a_terminal_it_wants_yes_and_does_nothing(installed: Path, memctl: Memctl) -> None:
    refused = memctl("uninstall")
    assert refused.code == 2
    warning = "This removes memoryd with 1 memory; it cannot be undone. To take them along, run `memctl export` first."
    assert f"{warning} Give --yes" in refused.err
    assert memctl("search", "tea", "--json").json[0]["content"] == "Ada drinks green tea"


def test_what_is_shown_before_the_question_has_the_warning_and_no_colours(
    installed: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr("memoryd.client.leaving.commands.confirm", lambda *texts: asked.append(texts))
    monkeypatch.setattr("memoryd.client.memctl.output.is_terminal", lambda: True)
    done = memctl("uninstall")
    [(word, _, preview, otherwise)] = asked
    assert (word, otherwise) == ("uninstall", "Nothing was removed.")
    assert preview.startswith("To be removed:\n  hooks ")
    assert "\nmemctl: This removes memoryd with 1 memory; it cannot be undone." in preview
    assert ("\x1b" in preview, "\x1b" in done.out) == (False, True)


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


def test_lines_of_the_users_own_are_named_and_stay(home: Path, memctl: Memctl) -> None:
    entry = '{"mcpServers": {"memory": {"command": "memctl", "args": ["mcp"]}}}'
    (home / ".cursor" / "mcp.json").write_text(entry)
    (home / ".bashrc").write_text("\nsource <(memctl completion bash)\n")
    (home / ".profile").write_text("umask 022\n")
    (home / ".zshenv").write_text("export MEMORYD_DATA_DIR=/x\n")
    (home / ".config" / "environment.d").mkdir(parents=True)
    (home / ".config" / "environment.d" / "offline.conf").write_text("LANG=C\nMEMORYD_OFFLINE=1\nMEMORYD_TOKEN=x\n")
    nothing = memctl("uninstall", "--dry-run").out
    memctl("hooks", "install", "cursor")
    for out in (nothing, memctl("uninstall", "--yes").out):
        assert "Stays:\n  ~/.cursor/mcp.json: it calls memctl in an entry of yours: take that out by hand\n" in out
        assert "  ~/.bashrc: it names memoryd in line 2: take that out by hand\n" in out
        assert "  ~/.zshenv: it names memoryd in line 1: take that out by hand\n" in out
        assert "  ~/.config/environment.d/offline.conf: it names memoryd in lines 2, 3: take that out by hand\n" in out
        assert ".profile" not in out
    assert (home / ".cursor" / "mcp.json").read_text() == entry


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
    (project / ".git" / "info").mkdir()
    (project / ".git" / "info" / "exclude").write_text("*.o\n/.cursor/mcp.json\n.gemini/\n")
    report = memctl("uninstall", "--yes", "--json").json
    [remains] = report["remains"]
    assert remains["name"] == str(project / ".git" / "info" / "exclude")
    assert remains["reason"] == "it hides files that had hooks, in line 2: take that out by hand"
    assert [part["path"] for part in report["parts"]] == [
        *(str(project / ".cursor" / name) for name in ("hooks.json", "mcp.json")),
        str(home / ".local/share/memoryd"),
    ]
    assert [path.name for path in project.rglob("*") if path.is_file()] == ["exclude"]


def test_hooks_in_the_current_folder_go_too(home: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch) -> None:
    project = home / "api"
    project.mkdir()
    monkeypatch.chdir(project)
    memctl("hooks", "install", "gemini", "--project", ".")
    (home / ".local/share/memoryd/hooks.folders").unlink()
    memctl("uninstall", "--yes")
    assert not (project / ".gemini/settings.json").exists()


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
            "reason": "how that file was before memoryd; delete it when you need it no more",
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
    assert f"{line} (this is said only now)\n" in out
    assert "~/other" not in out
    monkeypatch.chdir(home / "moved")
    memctl("uninstall", "--yes")
    assert list((home / "moved").iterdir()) == []


def test_a_model_goes_where_no_daemon_is_installed(home: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryd.client.leaving.finding.is_installed", lambda: False)
    for folder in (home / ".cache/memoryd/models", home / "models"):
        (folder / "mini").mkdir(parents=True)
        (folder / "mini" / "manifest.json").write_text("{}")
    [part] = memctl("uninstall", "--yes", "--json").json["parts"]
    assert (part["what"], part["path"], part["note"]) == ("models", str(home / ".cache/memoryd/models"), "mini")
    assert not (home / ".cache/memoryd").exists()
    (home / ".config" / "memoryd").mkdir(parents=True)
    (home / ".config" / "memoryd" / "config.toml").write_text('[model]\nfolder = "~/models"\n')
    memctl("uninstall", "--yes")
    assert not (home / "models").exists()


def test_the_folder_of_models_is_that_of_the_package_of_models(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.models_dir() == default_models_dir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    assert paths.models_dir() == default_models_dir()
    monkeypatch.setenv("MEMORYD_MODEL_DIR", str(home / "models"))
    assert paths.models_dir() == default_models_dir()


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


def test_an_mcp_server_that_an_agent_still_uses_is_named(installed: Path, memctl: Memctl) -> None:
    command = [sys.executable, "-P", "-m", "memoryd.client.memctl", "mcp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as server:
        try:
            [remains] = memctl("uninstall", "--dry-run", "--json").json["remains"]
        finally:
            server.kill()
    assert remains["name"] == f"memctl mcp (pid {server.pid})"
    assert "end the agent's session first" in remains["reason"]


@pytest.mark.parametrize("words", [["web", "--port", "0"], ["mcp", "--http", "0"]])
def test_a_server_over_http_is_named_with_what_ends_it(words: list[str], home: Path, memctl: Memctl) -> None:
    command = [sys.executable, "-c", "input()", "memoryd.client.memctl", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as server:
        try:
            [remains] = memctl("uninstall", "--dry-run", "--json").json["remains"]
            assert memctl("uninstall", "--yes").code == 1
        finally:
            server.kill()
    assert remains["reason"] == f"it still runs; this ends it: kill {server.pid}"


def test_the_daemon_of_another_memory_is_named_with_its_folder_and_what_removes_it(
    installed: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = installed / "notes" / "former"
    other.mkdir(mode=0o700)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("MEMORYD_DATA_DIR", str(other / "data"))
        elsewhere.setenv("MEMORYD_SOCKET", str(other / "s"))
        assert memctl("up").code == 0
        pid = memctl("status", "--json").json["pid"]
        try:
            elsewhere.undo()
            done = memctl("uninstall", "--yes", "--json")
        finally:
            elsewhere.setenv("MEMORYD_DATA_DIR", str(other / "data"))
            elsewhere.setenv("MEMORYD_SOCKET", str(other / "s"))
            memctl("down")
    assert done.code == 1
    [remains] = done.json["remains"]
    assert remains["name"] == f"daemon (pid {pid})"
    assert f"MEMORYD_DATA_DIR={other}/data MEMORYD_SOCKET={other}/s memctl uninstall" in remains["reason"]


def test_a_memory_beside_the_default_one_goes_alone(
    installed: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = installed / "notes" / "second"
    (second / "backups").mkdir(parents=True)
    (second / "memoryd.log").touch()
    pid = memctl("status", "--json").json["pid"]
    before = {name: data for name, data in contents(installed).items() if "memoryd/memoryd." not in name}
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("MEMORYD_DATA_DIR", str(second))
        assert f"This removes the memory in {second} alone, with 0 memories" in memctl("uninstall").err
        report = memctl("uninstall", "--yes", "--json").json
        assert "\n  ~/notes/second: MEMORYD_DATA_DIR names this folder, and it does not exist\n" in (
            memctl("uninstall", "--yes").out + "\n"
        )
    assert ([part["path"] for part in report["parts"]], report["then"]) == ([str(second)], "")
    [remains] = report["remains"]
    assert remains["name"] == str(installed / ".local/share/memoryd")
    assert remains["reason"] == (
        "the default memory, 1 memory, 1 copy in backups/; hooks, service, settings and models stay with it; "
        "this removes all that: env -u MEMORYD_DATA_DIR memctl uninstall"
    )
    after = {name: data for name, data in contents(installed).items() if "memoryd/memoryd." not in name}
    assert before.keys() - after.keys() == {"notes/second/memoryd.log", "notes/second/backups"}
    assert memctl("status", "--json").json["pid"] == pid


@pytest.mark.parametrize("names", [("MEMORYD_DATA_DIR", "MEMORYD_SOCKET"), ("MEMORYD_SOCKET",)])
def test_what_is_printed_for_another_memory_removes_that_one_alone(
    names: tuple[str, ...], installed: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = installed / "notes" / "former"
    other.mkdir(mode=0o700)
    places = {"MEMORYD_DATA_DIR": str(other / "data"), "MEMORYD_SOCKET": str(other / "s")}
    with monkeypatch.context() as elsewhere:
        for name, place in places.items():
            elsewhere.setenv(name, place)
        assert memctl("up").code == 0
    try:
        assert " ".join(f"{name}={place}" for name, place in places.items()) in memctl("uninstall", "--dry-run").out
        with monkeypatch.context() as elsewhere:
            for name in names:
                elsewhere.setenv(name, places[name])
            parts = memctl("uninstall", "--yes", "--json").json["parts"]
    finally:
        monkeypatch.setenv("MEMORYD_SOCKET", str(other / "s"))
        memctl("down")
        monkeypatch.delenv("MEMORYD_SOCKET")
    assert [part["what"] for part in parts] == ["daemon", "socket", "data"]
    assert list(other.iterdir()) == []
    assert not (installed / ".local/share/memoryd/hooks.removed").exists()
    assert memctl("search", "tea", "--json").json[0]["content"] == "Ada drinks green tea"


def test_a_service_goes_with_the_memory_that_it_is_for(
    home: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".local/share/memoryd").mkdir(parents=True)
    (home / ".local/share/memoryd/memoryd.log").touch()
    (home / ".config/systemd/user").mkdir(parents=True)
    for name, text in format_units(current_place(paths.socket_path(), str(home / "data"), None, "")).items():
        (activation.unit_folder() / name).write_text(text)
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(home / "dat"))
    assert memctl("uninstall", "--yes", "--json").json["parts"] == []
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(home / "data"))
    assert [part["what"] for part in memctl("uninstall", "--yes", "--json").json["parts"]] == ["service", "service"]
    assert not (home / ".config/systemd").exists()


def test_without_an_installed_daemon_it_says_how_memories_can_be_exported(
    home: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.client.leaving.finding.is_installed", lambda: False)
    monkeypatch.setattr("memoryd.client.leaving.commands.is_installed", lambda: False)
    (home / ".local/share/memoryd").mkdir(parents=True)
    (home / ".local/share/memoryd/memoryd.log").touch()
    asked = memctl("uninstall").err
    assert "To take them along, install memoryd again with the extra daemon: pip install " in asked
    assert "; then run `memctl export`." in asked


def test_files_about_memoryd_alone_are_to_be_deleted_and_named_each_time(home: Path, memctl: Memctl) -> None:
    for name in (".zfunc/_memctl", ".hermes/plugins/memoryd/__init__.py", ".config/memoryd/my.key"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("memoryd")
    (home / ".config/memoryd/config.toml").write_text("")
    for _ in range(2):
        out = memctl("uninstall", "--yes").out
        assert "  ~/.zfunc/_memctl: it is for memoryd alone: delete this file\n" in out
        assert "  ~/.hermes/plugins/memoryd/__init__.py: it is for memoryd alone: delete this file\n" in out
        assert "  ~/.config/memoryd/my.key: memoryd did not write it\n" in out


def test_files_that_another_installation_wrote_into_come_back_to_the_byte(
    home: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(home)
    for agent in HOSTS:
        memctl("hooks", "install", agent)
    monkeypatch.setattr("memoryd.client.agents.hooks.installing.own_command", lambda: ["/opt/other/bin/memctl"])
    notes = {part["note"] for part in memctl("uninstall", "--yes", "--json").json["parts"] if part["what"] == "hooks"}
    assert notes == {"as it was before, to the byte", "deleted: all of it is memoryd's"}
    assert {name: data for name, data in contents(home).items() if data} == before


def test_turns_are_counted_also_while_the_daemon_is_down(installed: Path, memctl: Memctl) -> None:
    memctl("observe", "We deploy on Tuesdays", "--namespace", "ada", "--session", "s1")
    for _ in range(2):
        assert "(1 memory, 1 turn, 1 copy in backups/, " in memctl("uninstall", "--dry-run").out
        assert "removes memoryd with 1 memory, 1 turn;" in memctl("uninstall").err
        memctl("down")


def test_parts_of_files_are_counted_apart(installed: Path, memctl: Memctl) -> None:
    memctl("workspace", "add", str(installed / "notes"))
    memctl("workspace", "index", str(installed / "notes"))
    for _ in range(2):
        assert "(1 memory, 1 part of files, 1 copy in backups/, " in memctl("uninstall", "--dry-run").out
        memctl("down")


def test_a_daemon_that_another_uninstall_has_stopped_meanwhile_is_no_error(
    installed: Path, memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = msgspec.json.decode(memctl("status", "--json").out, type=Status)
    memctl("down")
    monkeypatch.setattr("memoryd.client.leaving.finding.restart.get_status", lambda args: status)
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
    copytree(installed / ".local/share/memoryd", shared)
    copytree(installed / "notes", shared / "notes")
    monkeypatch.setenv("MEMORYD_DATA_DIR", str(shared))
    memctl("uninstall", "--yes")
    assert contents(shared) == {"notes/tea.md": b"Green tea\n"}
