"""up, down, the private daemon and the demo: daemons in processes of their own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from fake_daemon import Memctl

from configs import NO_MODEL
from memoryd.client.errors import Unavailable
from memoryd.client.extras import advise
from memoryd.client.programs.memctl.private_daemon import run_private_daemon
from waiting import wait_until

COMMAND = [sys.executable, "-m", "memoryd.client.programs.memctl"]


@pytest.fixture
def no_model(folder: Path) -> None:
    (folder / "config.toml").write_text(NO_MODEL)


@pytest.mark.slow
@pytest.mark.usefixtures("no_model")
def test_up_and_down(memctl: Memctl, folder: Path) -> None:
    try:
        started = memctl("up", "--json").json
        assert (started["socket"], started["data_dir"]) == (str(folder / "s"), str(folder / "data"))
        assert f"already runs, pid {started['pid']}" in memctl("up").out
        elsewhere = memctl("list", "--socket", str(folder / "t")).err
        assert f"No daemon answers at {folder / 't'}, and none did start: Another daemon already serves" in elsewhere
        assert f"and listens at {folder / 's'};" in elsewhere
        assert "stop it with `memctl down`" in memctl("up", "--data-dir", "/elsewhere").err
        assert "The model is none, missing" in memctl("up", "--wait").err
        assert memctl("add", "x").code == 0
        assert f"restarted, pid {started['pid']} as before." in memctl("up", "--restart").out
    finally:
        stopped = memctl("down")
    assert stopped.out == f"memoryd has stopped (pid {started['pid']}).\n"
    assert memctl("status").code == 3
    again = memctl("down")
    assert (again.code, again.out) == (0, f"No daemon runs at {folder / 's'}.\n")


@pytest.mark.slow
@pytest.mark.usefixtures("no_model")
def test_a_restart_with_wrong_settings_says_what_is_wrong(memctl: Memctl, folder: Path) -> None:
    try:
        memctl("up")
        (folder / "config.toml").write_text("[observe]\nonlyy = []\n")
        refused = memctl("up", "--restart")
        assert (refused.code, "there is no setting `onlyy` in [observe]" in refused.err) == (3, True)
    finally:
        memctl("down")


@pytest.mark.usefixtures("no_model")
def test_up_passes_its_options_on(memctl: Memctl, folder: Path) -> None:
    try:
        started = memctl("up", "--data-dir", str(folder / "other"), "--json").json
        assert started["data_dir"] == str(folder / "other")
        assert (folder / "other" / "memoryd.log").stat().st_mode & 0o077 == 0
        assert not (folder / "data").exists()
    finally:
        memctl("down")


@pytest.mark.usefixtures("no_model")
def test_a_command_starts_the_daemon_when_none_answers(memctl: Memctl) -> None:
    try:
        assert memctl("add", "x").code == 0
        assert memctl("search", "x", "--json").json[0]["content"] == "x"
        assert "model is not ready" in memctl("search", "x").err
    finally:
        memctl("down")


def test_config_shows_the_settings_in_force(memctl: Memctl, folder: Path) -> None:
    (folder / "config.toml").write_text(NO_MODEL)
    assert memctl("config", "--json").json["model"]["name"] == "none"
    assert '[model]\nname    "none"' in memctl("config", "show").out
    assert memctl("config", "path").out == f"{folder / 'config.toml'}\n"
    assert memctl("config", "path", "--json").json == {"path": str(folder / "config.toml"), "exists": True}


def test_a_wrong_configuration_is_explained_and_found_by_doctor(
    memctl: Memctl, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "config.toml").write_text("nonsense")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    failed = memctl("config")
    assert (failed.code, failed.out) == (1, "")
    assert "config.toml is wrong" in failed.err
    findings = {finding["name"]: finding for finding in memctl("doctor", "--json").json}
    assert "config.toml is wrong" in findings["configuration"]["message"]


@pytest.mark.slow
def test_models_are_listed(memctl: Memctl, folder: Path) -> None:
    (folder / "config.toml").write_text('[model]\nfolder = "models"\n')
    rows = memctl("model", "list", "--json").json
    assert {"name", "installed", "dimensions", "description"} <= rows[0].keys()
    assert not any(row["installed"] for row in rows)
    assert "all-MiniLM-L6-v2" in memctl("model").out
    assert "No model is called" in memctl("model", "pull", "nothing").err
    assert "not a folder" in memctl("model", "import", str(folder / "none")).err


def test_without_the_daemons_packages_a_sentence_says_what_to_install(
    memctl: Memctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoryd.client.programs.memctl.local.find_spec", lambda name: None)
    for words in (
        ["config"],
        ["model", "list"],
        ["demo"],
    ):
        failed = memctl(*words)
        assert failed.code == 1
        assert advise("daemon") in failed.err


@pytest.mark.slow
def test_a_private_daemon_survives_its_kill_and_leaves_nothing() -> None:
    with run_private_daemon(config=NO_MODEL) as daemon:
        with daemon.client() as client:
            id = client.add("kept").id
        daemon.kill()
        daemon.start()
        with daemon.client() as client:
            assert client.get(id).content == "kept"
        pid = daemon.pid
    assert not daemon.folder.exists()
    assert not Path(f"/proc/{pid}").exists()


def test_a_private_daemon_that_cannot_start_says_why_and_leaves_nothing() -> None:
    with (
        pytest.raises(Unavailable, match=r"configuration .* is wrong") as failure,
        run_private_daemon(config="nonsense"),
    ):
        pass
    folder = Path(failure.value.message.split("The configuration ")[1].split("/config.toml")[0])
    assert folder.is_absolute()
    assert not folder.exists()


@pytest.mark.slow
def test_a_private_daemon_ends_also_when_its_process_is_killed(folder: Path) -> None:
    program = (
        "import time\n"
        "from memoryd.client.programs.memctl.private_daemon import run_private_daemon\n"
        f"with run_private_daemon(config={NO_MODEL!r}) as daemon:\n"
        "    print(daemon.folder, daemon.pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    made, pid = child.stdout.readline().split()
    child.kill()
    child.communicate()
    wait_until(lambda: not Path(made).exists())
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text())


def demo_environment(folder: Path) -> dict[str, str]:
    """Return an environment without a model and with a temporary folder of its own."""
    (folder / "tmp").mkdir()
    offline = {"MEMORYD_OFFLINE": "1", "MEMORYD_MODEL_DIR": str(folder / "none"), "TMPDIR": str(folder / "tmp")}
    return {**os.environ, **offline}


@pytest.mark.slow
def test_the_demo_loses_nothing_and_leaves_nothing(folder: Path) -> None:
    command = [*COMMAND, "demo", "--json"]
    done = subprocess.run(command, env=demo_environment(folder), capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr
    figures = msgspec.json.decode(done.stdout)
    expected = {"private_hidden": True, "nothing_lost": True, "problems": [], "removed": True}
    assert {name: figures[name] for name in expected} == expected
    assert b"searches by words only" in done.stderr
    assert list((folder / "tmp").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["[model]\nfetch = false\n", "[network]\noffline = true\n"])
def test_the_demo_fetches_no_model_where_the_settings_forbid_it(setting: str, folder: Path) -> None:
    (folder / "config.toml").write_text(setting)
    nowhere = dict.fromkeys(("HF_ENDPOINT", "PIP_INDEX_URL"), "http://127.0.0.1:9")
    allowed = {
        **demo_environment(folder),
        **nowhere,
        "MEMORYD_OFFLINE": "",
        "MEMORYD_CONFIG": str(folder / "config.toml"),
    }
    done = subprocess.run([*COMMAND, "demo"], env=allowed, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    said = setting.splitlines()[1].removesuffix(" = true")
    assert f"no embedding model (none is installed, and `{said}` is set): the demo searches by words" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_the_demo_cleans_up_when_it_is_interrupted(folder: Path, number: int) -> None:
    command = [*COMMAND, "demo"]
    with subprocess.Popen(
        command,
        env=demo_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    ) as process:
        assert process.stdout
        assert process.stderr
        while b"1. A daemon" not in process.stdout.readline():
            pass
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert b"Traceback" not in err
    give_up_at = time.monotonic() + 10
    while list((folder / "tmp").iterdir()) and time.monotonic() < give_up_at:
        time.sleep(0.01)
    assert list((folder / "tmp").iterdir()) == []
