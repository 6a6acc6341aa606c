"""Install and remove the service, and report its state (that of the units) with notes for the user.

Only files with our mark are changed, and running clients are never refused.

A daemon that clients started continues until systemd has taken over its socket. systemd replaces the socket by its own;
then the old daemon is asked to stop, over a connection that was opened before. New clients wait in the queue.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from memoryd.client.errors import MemorydError, Unavailable
from memoryd.client.programs.systemd.units import Installation, command_of, format_units, is_ours
from memoryd.client.protocol import Shutdown, Status
from memoryd.client.transport import activation
from memoryd.client.transport.activation import SERVICE_UNIT, SOCKET_UNIT, run_systemctl
from memoryd.client.transport.sync import Client

INSTEAD = "clients start the daemon themselves when they need it"
UNLIMITED = 2**60  # larger than any memory; systemd reports such a number for no limit
_ASKED = "ActiveState SubState Result MainPID NRestarts ExecMainStartTimestamp MemoryCurrent MemoryMax WatchdogUSec"


class Installed(msgspec.Struct):
    """Result of an installation; `version` and `pid` are those of the daemon that answers through it."""

    files: list[str]
    changed: list[str]
    socket: str
    data_dir: str
    lingering: bool
    version: str
    pid: int


class Removed(msgspec.Struct):
    """The files that were removed, and those that were kept because memctl did not write them."""

    removed: list[str]
    left: list[str]


def install(place: Installation, client: Client) -> Installed:
    """Write, enable and start the units; repeating it changes nothing."""
    if reason := activation.find_obstacle():
        raise MemorydError(f"{reason[0].upper()}{reason[1:]}, so there is no service; {INSTEAD}.")
    own = _is_active(SOCKET_UNIT)
    former = None if own else _read_status(client)
    if former and Path(former.data_dir).resolve() != place.data_dir.resolve():
        raise MemorydError(
            f"A daemon with its data in {former.data_dir} answers at {place.socket}; "
            "install with that --data-dir, or stop it with `memctl down`."
        )
    changed = _write(format_units(place))
    _run_systemctl("daemon-reload")
    _check_found(changed)
    _run_systemctl("enable", SOCKET_UNIT, SERVICE_UNIT)
    _start(client, changed if own else None, former is not None)
    status = client.status()
    return Installed(
        files=[str(activation.unit_folder() / name) for name in (SOCKET_UNIT, SERVICE_UNIT)],
        changed=changed,
        socket=str(place.socket),
        data_dir=str(place.data_dir),
        lingering=is_lingering(),
        version=status.version,
        pid=status.pid,
    )


def find_units() -> tuple[dict[str, Path], dict[str, Path]]:
    """Return the existing unit files by name: those that memctl wrote, and all others."""
    there = {name: activation.unit_folder() / name for name in (SOCKET_UNIT, SERVICE_UNIT)}
    there = {name: path for name, path in there.items() if path.is_file()}
    ours = {name: path for name, path in there.items() if is_ours(_read_text(path) or "")}
    return ours, {name: path for name, path in there.items() if name not in ours}


def uninstall() -> Removed:
    """Stop and disable the service and remove its files; the data stays."""
    ours, foreign = find_units()
    manager = not activation.find_obstacle()
    if known := [name for name in ours if manager and _is_known(name)]:
        _run_systemctl("disable", "--now", *known, limit_s=activation.START_LIMIT_S)
    for name, path in ours.items():
        link = activation.unit_folder() / {SOCKET_UNIT: activation.WANTED, SERVICE_UNIT: activation.STARTED}[name]
        link.unlink(missing_ok=True)
        with suppress(OSError):  # links of other units are in it
            link.parent.rmdir()
        path.unlink(missing_ok=True)
    if ours:
        _remove_empty()
    if known:
        _run_systemctl("daemon-reload")
        run_systemctl("reset-failed", *known)
    return Removed([str(path) for path in ours.values()], [str(path) for path in foreign.values()])


def _remove_empty() -> None:
    """Remove the folders of units, which an installation creates, if they are empty."""
    for folder in (activation.unit_folder(), activation.unit_folder().parent):
        with suppress(OSError):
            folder.rmdir()


def is_lingering() -> bool:
    """Return whether the user manager keeps running after the user's last logout."""
    import pwd

    try:
        return Path("/var/lib/systemd/linger", pwd.getpwuid(os.getuid()).pw_name).exists()
    except (KeyError, OSError):
        return False


def _write(texts: dict[str, str]) -> list[str]:
    """Write the files whose content differs; refuse to replace a file that memctl did not write."""
    folder = activation.unit_folder()
    former = {name: _read_text(folder / name) for name in texts}
    for name, text in former.items():
        if text is not None and not is_ours(text):
            raise MemorydError(f"{folder / name} was not written by memctl; move it away first. Nothing was changed.")
    changed = [name for name, text in texts.items() if former[name] != text]
    folder.mkdir(parents=True, exist_ok=True)
    for name in changed:
        fresh = folder / f".{name}.new"
        fresh.write_text(texts[name], "utf-8")
        fresh.replace(folder / name)
    return changed


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return None


def _check_found(changed: list[str]) -> None:
    """Check that the user manager reads the folder: it may have been started with another XDG_CONFIG_HOME."""
    if _is_known(SOCKET_UNIT):
        return
    for name in changed:
        (activation.unit_folder() / name).unlink()
    _remove_empty()
    raise MemorydError(
        f"systemd's user manager does not read {activation.unit_folder()}, so nothing was installed; "
        "do it with the XDG_CONFIG_HOME that the manager was started with."
    )


def _is_known(unit: str) -> bool:
    """Return whether the user manager loads a unit from our folder."""
    seen = run_systemctl("show", "--property=FragmentPath", "--value", unit).stdout.strip()
    return bool(seen) and os.path.exists(seen) and os.path.samefile(seen, activation.unit_folder() / unit)


def _start(client: Client, changed: list[str] | None, former: bool) -> None:
    """Start the service with the units as they are now; restart units in `changed` if the socket is active already.

    If `former` is set, a daemon that systemd did not start serves the socket, and `client` is connected to it.
    """
    run_systemctl("reset-failed", SOCKET_UNIT, SERVICE_UNIT)
    if changed and SOCKET_UNIT in changed:
        _run_systemctl("stop", SERVICE_UNIT, SOCKET_UNIT, limit_s=activation.START_LIMIT_S)
    elif changed and _is_active(SERVICE_UNIT):
        client.call(Shutdown(restart=True))
        client.close()
    _run_systemctl("start", SOCKET_UNIT)
    if former:
        with suppress(MemorydError):  # it has ended already
            client.call(Shutdown())
        client.close()
    if run_systemctl("start", SERVICE_UNIT, limit_s=activation.START_LIMIT_S).returncode:
        raise Unavailable(activation.FAILED)


def _read_status(client: Client) -> Status | None:
    try:
        return client.status()
    except Unavailable:
        return None


def _is_active(unit: str) -> bool:
    return run_systemctl("is-active", unit).stdout.strip() in ("active", "activating", "reloading", "deactivating")


def _run_systemctl(*words: str, limit_s: float = 30.0) -> None:
    done = run_systemctl(*words, limit_s=limit_s)
    if done.returncode:
        reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[0]
        raise MemorydError(f"systemctl --user {' '.join(words)}: {reason.rstrip('.')}.")


# State ---------------------------------------------------------------------------------------------------------------


class ServiceState(msgspec.Struct):
    """The state of the units; numbers are 0 and texts empty if systemd does not report them."""

    installed: bool
    ours: bool = False
    enabled: bool = False
    starts_itself: bool = False
    manager: str = ""
    file: str = ""
    python: str = ""
    socket: str = ""
    socket_state: str = ""
    service_state: str = ""
    result: str = ""
    pid: int = 0
    started: str = ""
    restarts: int = 0
    memory_bytes: int = 0
    memory_limit_bytes: int = 0
    watchdog: str = ""
    lingering: bool = False
    notes: list[str] = []


def read_state() -> ServiceState:
    """Return the state of the service; `manager` is the reason why the user manager cannot be used, if any."""
    file = activation.unit_folder() / SERVICE_UNIT
    found = ServiceState(installed=file.is_file(), manager=activation.find_obstacle())
    if found.installed:
        text = file.read_text("utf-8", "replace")
        socket = activation.unit_folder() / SOCKET_UNIT
        found.file, found.ours, found.python = str(file), is_ours(text), command_of(text)
        found.socket = activation.read_socket_path(socket.read_text("utf-8", "replace")) if socket.is_file() else ""
        found.enabled = os.path.lexists(activation.unit_folder() / activation.WANTED)
        found.starts_itself = os.path.lexists(activation.unit_folder() / activation.STARTED)
        found.lingering = is_lingering()
    if found.installed and not found.manager:
        _ask(found)
    found.notes = _make_notes(found)
    return found


def _ask(found: ServiceState) -> None:
    known = _read_properties(SERVICE_UNIT)
    found.service_state = f"{known.get('ActiveState', '')} ({known.get('SubState', '')})"
    found.socket_state = _read_properties(SOCKET_UNIT).get("ActiveState", "")
    found.result = known.get("Result", "")
    found.pid, found.restarts = _parse_number(known.get("MainPID", "")), _parse_number(known.get("NRestarts", ""))
    found.started = known.get("ExecMainStartTimestamp", "") if found.pid else ""
    found.memory_bytes = _parse_number(known.get("MemoryCurrent", ""))
    found.memory_limit_bytes = _parse_number(known.get("MemoryMax", ""))
    found.watchdog = known.get("WatchdogUSec", "")


def _read_properties(unit: str) -> dict[str, str]:
    shown = run_systemctl("show", f"--property={','.join(_ASKED.split())}", unit).stdout
    return dict(line.partition("=")[::2] for line in shown.splitlines() if "=" in line)


def _parse_number(text: str) -> int:
    return int(text) if text.isdigit() and int(text) < UNLIMITED else 0


def _make_notes(found: ServiceState) -> list[str]:
    """Return notes and advice for the user, one sentence each."""
    notes = []
    if found.manager:
        notes.append(f"{found.manager[0].upper()}{found.manager[1:]}: {INSTEAD}.")
    elif not found.installed:
        notes.append(f"Not installed: {INSTEAD}. `memctl service install` makes it a service of systemd.")
    if not found.installed:
        return notes
    if not found.enabled:
        notes.append(f"The socket is not enabled: {INSTEAD}. `memctl service install` enables it.")
    elif not found.starts_itself:
        notes.append("After a start of the machine it waits for a client; `memctl service install` changes that.")
    if found.python and not os.access(found.python, os.X_OK):
        notes.append(f"{found.python} no longer exists: install it again with `memctl service install`.")
    elif found.python and Path(found.python) != Path(os.path.abspath(sys.executable)):
        notes.append(
            f"The service runs {found.python}, this is {sys.executable}: `memctl service install` changes that."
        )
    if found.result not in ("", "success"):
        notes.append(f"The last run ended badly ({found.result}): `{activation.LOGS}` shows why.")
    if found.socket_state == "failed":
        notes.append("The socket was closed after too many failed starts: `memctl service install` opens it again.")
    if not found.lingering:
        notes.append("It ends with your last session; `loginctl enable-linger` keeps it running after that.")
    return notes
