"""Install and remove the service. Only files with our mark are ever changed, and no running client is refused.

A daemon that clients started continues until systemd holds its socket: systemd puts its own socket in the place, then
the old daemon is asked to finish over a connection that was opened before; new clients wait in the queue.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from memoryd.client.errors import MemorydError, Unavailable
from memoryd.client.memctl.systemd.units import Place, format_units, is_ours
from memoryd.client.protocol import Restart, Shutdown, Status
from memoryd.client.transport import activation
from memoryd.client.transport.activation import SERVICE_UNIT, SOCKET_UNIT, run_systemctl
from memoryd.client.transport.sync import Client

INSTEAD = "clients start the daemon themselves when they need it"


class Installed(msgspec.Struct):
    """What an installation came to; `version` and `pid` of the daemon that answers through it."""

    files: list[str]
    changed: list[str]
    socket: str
    data_dir: str
    lingering: bool
    version: str = ""
    pid: int = 0


class Removed(msgspec.Struct):
    """What was removed, and what was left because memctl did not write it."""

    removed: list[str]
    left: list[str]


def require_manager() -> None:
    """Raise an error that says what happens instead where systemd's user manager cannot be used."""
    if reason := activation.find_obstacle():
        raise MemorydError(f"{reason[0].upper()}{reason[1:]}, so there is no service; {INSTEAD}.")


def install(place: Place, client: Client, start: bool) -> Installed:
    """Write, enable and start the units; the same again changes nothing."""
    require_manager()
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
    _run_systemctl("enable", SOCKET_UNIT)
    result = Installed(
        files=[str(activation.unit_folder() / name) for name in (SOCKET_UNIT, SERVICE_UNIT)],
        changed=changed,
        socket=str(place.socket),
        data_dir=str(place.data_dir),
        lingering=is_lingering(),
    )
    if start:
        _start(client, changed if own else None, former is not None)
        status = client.status()
        result.version, result.pid = status.version, status.pid
    return result


def uninstall() -> Removed:
    """Stop and disable the service and remove its files; the data stays."""
    found = {name: activation.unit_folder() / name for name in (SOCKET_UNIT, SERVICE_UNIT)}
    ours = {name: path for name, path in found.items() if path.is_file() and is_ours(path.read_text("utf-8"))}
    manager = not activation.find_obstacle()
    if known := [name for name in ours if manager and _is_known(name)]:
        _run_systemctl("disable", "--now", *known, limit_s=activation.START_LIMIT_S)
    link = activation.unit_folder() / activation.WANTED
    if SOCKET_UNIT in ours:
        link.unlink(missing_ok=True)
        with suppress(OSError):  # others are wanted there too
            link.parent.rmdir()
    for path in ours.values():
        path.unlink()
    if known:
        _run_systemctl("daemon-reload")
        run_systemctl("reset-failed", *known)
    return Removed([str(path) for path in ours.values()], [str(p) for p in found.values() if p.is_file()])


def is_lingering() -> bool:
    """Return whether the user manager continues when the user has logged out everywhere."""
    import pwd

    try:
        return Path("/var/lib/systemd/linger", pwd.getpwuid(os.getuid()).pw_name).exists()
    except (KeyError, OSError):
        return False


def _write(texts: dict[str, str]) -> list[str]:
    """Write the files whose text is another; refuse to touch one that somebody else wrote."""
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
    """Look whether the user manager reads the folder: it may have been started with another XDG_CONFIG_HOME."""
    if _is_known(SOCKET_UNIT):
        return
    for name in changed:
        (activation.unit_folder() / name).unlink()
    raise MemorydError(
        f"systemd's user manager does not read {activation.unit_folder()}, so nothing was installed; "
        "do it with the XDG_CONFIG_HOME that the manager was started with."
    )


def _is_known(unit: str) -> bool:
    """Return whether the user manager takes a unit from our folder."""
    seen = run_systemctl("show", "--property=FragmentPath", "--value", unit).stdout.strip()
    return bool(seen) and os.path.exists(seen) and os.path.samefile(seen, activation.unit_folder() / unit)


def _start(client: Client, changed: list[str] | None, former: bool) -> None:
    """Bring the service up as it is written now. `changed`: units that were, of a socket that is active already.

    With `former` a daemon that no unit knows serves the socket, and `client` has a connection to it.
    """
    run_systemctl("reset-failed", SOCKET_UNIT, SERVICE_UNIT)
    if changed and SOCKET_UNIT in changed:
        _run_systemctl("stop", SERVICE_UNIT, SOCKET_UNIT, limit_s=activation.START_LIMIT_S)
    elif changed and _is_active(SERVICE_UNIT):
        client.call(Restart())
        client.close()
    _run_systemctl("start", SOCKET_UNIT)
    if former:
        with suppress(MemorydError):  # it has ended by itself
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
