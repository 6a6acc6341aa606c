"""The unit files as they are installed: word for word, whatever the paths; and the rules that the templates keep."""

import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memoryd
from each import each
from memoryd.client.errors import Invalid
from memoryd.client.programs.systemd.units import Installation, command_of, current_place, format_units, is_ours
from memoryd.client.transport import activation
from waiting import wait_until

GOLDEN = Path(__file__).parent.parent / "data" / "units"
TEMPLATES = Path(memoryd.__file__).parent / "systemd"
NAMES = ("memoryd.socket", "memoryd.service")
PLAIN = Installation(
    Path("/home/user/.local/bin/python"),
    Path("/run/user/1000/memoryd/memoryd.sock"),
    Path("/home/user/.local/share/memoryd"),
    Path("/home/user/.config/memoryd/config.toml"),
)
ODD = Installation(
    Path("/opt/o dd %t $HOME é/bin/python"),
    Path("/tmp/a socket 100%/s"),
    Path("/home/user/data \"of\" 'mine' \\x"),
    Path("/home/user/$config.toml"),
    Path("/srv/models %h"),
    "25%",
)


@pytest.fixture(autouse=True)
def _runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    monkeypatch.setenv("HOME", "/home/user")


@each(("place", "folder"), [(PLAIN, "plain"), (ODD, "odd")])
@each("name", NAMES)
def test_the_units_are_word_for_word_what_they_were(place: Installation, folder: str, name: str) -> None:
    """After a change on purpose: `python tests/systemd/test_units.py`, and read the difference."""
    assert format_units(place)[name] == (GOLDEN / folder / name).read_text()


@each("name", NAMES)
def test_every_directive_has_its_reason_above_it(name: str) -> None:
    self_evident = {"Description", "ExecStart", "DirectoryMode", "After", "StartLimitBurst", "WantedBy"} | {
        "SuccessExitStatus",
        "TimeoutAbortSec",
        "Restart",
        "TimeoutStopSec",
    }  # told in the comment of the directive before them
    lines = (TEMPLATES / name).read_text().splitlines()
    for above, line in pairwise(lines):
        directive = line.partition("=")[0]
        if line and not line.startswith(("#", "[")) and directive not in self_evident:
            assert above.startswith("# "), line


def test_nothing_puts_the_daemon_into_a_throttled_class() -> None:
    told = (TEMPLATES / "memoryd.service").read_text()
    slow = "Nice CPUWeight CPUQuota CPUSchedulingPolicy IOSchedulingClass IOWeight MemoryHigh Slice AllowedCPUs"
    assert not [name for name in slow.split() if re.search(f"^{name}=", told, re.MULTILINE)]


def test_the_templates_come_with_the_package() -> None:
    assert {path.name for path in TEMPLATES.iterdir()} >= set(NAMES)
    assert not any(is_ours((TEMPLATES / name).read_text()) for name in NAMES)


@each("place", [PLAIN, ODD])
def test_what_was_written_is_read_back(place: Installation) -> None:
    texts = format_units(place)
    assert all(is_ours(text) for text in texts.values())
    assert activation.read_socket_path(texts["memoryd.socket"]) == str(place.socket)
    assert command_of(texts["memoryd.service"]) == str(place.python)


path_text = st.text(
    st.characters(exclude_characters="/\"'\\", exclude_categories=("C", "Z")) | st.just(" "), min_size=1
)


@given(path_text.filter(lambda text: text == text.strip() and text not in (".", "..")))
def test_any_printable_path_survives(name: str) -> None:
    texts = format_units(PLAIN._replace(python=Path(f"/x/{name}/python"), socket=Path(f"/x/{name}/s")))
    assert activation.read_socket_path(texts["memoryd.socket"]) == f"/x/{name}/s"
    assert command_of(texts["memoryd.service"]) == f"/x/{name}/python"
    assert len(texts["memoryd.service"].splitlines()) == len(format_units(PLAIN)["memoryd.service"].splitlines())


@each("path", ["/x/a\nExecStartPre=/bin/evil", "/x/a\tb", "/x/ends in a blank "])
def test_a_path_that_a_unit_cannot_hold_is_refused(path: str) -> None:
    for place in (PLAIN._replace(python=Path(path)), PLAIN._replace(socket=Path(path))):
        with pytest.raises(Invalid, match="systemd cannot hold this path"):
            format_units(place)


@each("sign", ['"', "'", "\\"])
def test_an_interpreter_that_systemd_would_not_run_is_refused(sign: str) -> None:
    with pytest.raises(Invalid, match="quotes or backslashes"):
        format_units(PLAIN._replace(python=Path(f"/x{sign}/python")))


def test_what_the_shell_says_of_places_goes_into_the_units(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEMORYD_MODEL_DIR", "XDG_CACHE_HOME", "MEMORYD_DATA_DIR", "MEMORYD_CONFIG", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert current_place(PLAIN.socket, None, None, "").models is None
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    monkeypatch.setenv("MEMORYD_DATA_DIR", "/data")
    place = current_place(PLAIN.socket, None, "settings.toml", "2G")
    assert (place.models, place.data_dir) == (Path("/cache/memoryd/models"), Path("/data"))
    assert (place.config, place.python) == (Path.cwd() / "settings.toml", Path(sys.executable))


@each("size", ["2 G", "lots", "-1", "101%", "2G\nExecStop=/bin/evil", "2g"])
def test_a_memory_ceiling_that_systemd_would_not_read_is_refused(size: str) -> None:
    with pytest.raises(Invalid, match="no memory limit"):
        current_place(PLAIN.socket, None, None, size)


@pytest.mark.parametrize("place", [PLAIN, ODD])
def test_systemd_reads_the_units_without_a_complaint(place: Installation, folder: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("install systemd to run this")
    (folder / "python").symlink_to(sys.executable)
    for name, text in format_units(place._replace(python=folder / "python")).items():
        (folder / name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", *(str(folder / name) for name in NAMES)],
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


# The units of docs/server*.md -----------------------------------------------------------------------------------------


def read_guide() -> dict[str, str]:
    """Return the files that the pages about servers show, by their paths."""
    guide = "\n".join(page.read_text() for page in sorted((Path(__file__).parents[2] / "docs").glob("server*.md")))
    return dict(re.findall(r'^```ini title="([^"]+)"\n(.*?)^```$', guide, re.DOTALL | re.MULTILINE))


def test_the_unit_of_the_system_has_what_the_unit_of_a_user_has() -> None:
    told = read_guide()["/etc/systemd/system/memoryd.service"].splitlines()
    ours = (TEMPLATES / "memoryd.service").read_text().partition("[Service]")[2].partition("[Install]")[0]
    wanted = [line for line in ours.splitlines() if line and not line.startswith(("#", "ExecStart="))]
    assert [line for line in wanted if line not in told] == []


def test_systemd_reads_the_units_of_the_guide_without_a_complaint(folder: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("install systemd to run this")
    units = [
        (Path(path).name.replace("@.", "@ada."), text)
        for path, text in read_guide().items()
        if path.endswith(".service")
    ]
    assert len(units) == 2
    for name, text in units:
        (folder / name).write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", text, flags=re.MULTILINE))
    command = ["systemd-analyze", "verify", "--man=no", *(str(folder / name) for name, _ in units)]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    complaints = [line for line in done.stderr.splitlines() if "memoryd" in line]
    assert (done.returncode, complaints) == (0, [])


@pytest.mark.slow
def test_the_daemon_of_the_guide_starts_where_the_home_folder_cannot_be_read(folder: Path) -> None:
    said = dict(line.split("=", 1) for line in read_guide()["/etc/memoryd/environment"].splitlines())
    places = {name: f"{folder}/{Path(path).name}" for name, path in said.items()}
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/dev/null/closed", "MEMORYD_OFFLINE": "1", **places}
    daemon = subprocess.Popen([sys.executable, "-m", "memoryd.daemon"], env=environment, stderr=subprocess.PIPE)
    try:
        asked = [sys.executable, "-m", "memoryd.client.programs.memctl", "status", "--no-autostart"]
        wait_until(
            lambda: (
                daemon.poll() is not None or not subprocess.run(asked, env=environment, capture_output=True).returncode
            )
        )
    finally:
        daemon.terminate()
        _, log = daemon.communicate(timeout=60)
    assert daemon.returncode == 0, log
    assert (folder / "memoryd" / "memoryd.sqlite").exists()


_FAKES = """
botctl() { echo "botctl $*" >> CALLS; [ "$2" != add ] || echo mt_new; }
sudo() { "$@"; }
systemctl() { echo "systemctl $*" >> CALLS; }
start() { echo "start $*" >> CALLS; }
serve ada 879 --namespace team/ada
"""


@pytest.mark.parametrize("title", ["", ' title="/etc/memoryd/commands.sh"'], ids=["with systemd", "without systemd"])
def test_serve_of_the_guide_writes_the_token_or_revokes_it(folder: Path, title: str) -> None:
    guide = (Path(__file__).parents[2] / "docs/server-team.md").read_text()
    [block] = re.findall(
        rf"^```sh{re.escape(title)}\n((?:(?!^```).*\n)*?serve\(\) (?:.*\n)*?)```$", guide, re.MULTILINE
    )
    (folder / "serve").write_text((block + _FAKES.replace("CALLS", f"{folder}/calls")).replace("/etc", str(folder)))
    begun = "systemctl enable --now memoryd-mcp@ada" if not title else "start ada"
    for after in ("botctl token revoke ada", begun):  # at first there is no folder for the file
        subprocess.run(["bash", str(folder / "serve")], check=False)
        assert (folder / "calls").read_text().splitlines() == ["botctl token add ada --namespace team/ada", after]
        (folder / "calls").unlink()
        (folder / "memoryd").mkdir(exist_ok=True)
    assert (folder / "memoryd/mcp-ada").read_text() == "PORT=879\nMEMORYD_TOKEN=mt_new\n"


if __name__ == "__main__":
    import os

    os.environ.update(XDG_RUNTIME_DIR="/run/user/1000", HOME="/home/user")
    for written, chosen in (("plain", PLAIN), ("odd", ODD)):
        (GOLDEN / written).mkdir(parents=True, exist_ok=True)
        for unit, unit_text in format_units(chosen).items():
            (GOLDEN / written / unit).write_text(unit_text)
