"""Checks of memoryd as a service of systemd's user manager. Without one, clients start the daemon: nothing is amiss."""

import os

from memoryd.client.memctl.doctor.patient import Finding, Patient, fail, report_ok, warn
from memoryd.client.memctl.systemd import report
from memoryd.client.memctl.systemd.units import current_place, format_units, is_ours
from memoryd.client.transport import activation

INSTALL = "memctl service install"  # never run by itself: it was perhaps given options
# Directives that say where things lie on this machine.
OWN = ("ExecStart=", "Environment=", "MemoryMax=", "ListenStream=")


def check_service(patient: Patient) -> Finding | None:
    """See whether the service that is installed can start and listens where clients ask."""
    state = report.read_state()
    if not state.installed:
        return None
    socket = str(patient.client.socket_path)
    if state.python and not os.access(state.python, os.X_OK):
        return fail(f"the service starts {state.python}, which no longer exists", INSTALL)
    if not state.enabled:
        return warn("its socket is not enabled, so systemd does not start it for a client", INSTALL)
    if state.socket and state.socket != socket:
        return warn(f"the service listens at {state.socket}, clients ask at {socket}", INSTALL)
    if state.manager:
        return warn(f"the service is installed, and {state.manager}", "memctl service status")
    if state.socket_state == "failed":
        return fail("its socket was closed after too many failed starts", f"memctl service logs; {INSTALL}")
    if state.result not in ("", "success"):
        return warn(f"its last run ended badly ({state.result})", "memctl service logs")
    last = "" if state.lingering else "; it ends with your last session unless you `loginctl enable-linger`"
    return report_ok(f"installed, {state.service_state or 'not started'}{last}")


def check_service_units(patient: Patient) -> Finding | None:
    """Compare the units with those that this version would write, but for the places in them."""
    folder = activation.unit_folder()
    texts = {name: (folder / name) for name in (activation.SOCKET_UNIT, activation.SERVICE_UNIT)}
    present = {name: path.read_text("utf-8", "replace") for name, path in texts.items() if path.is_file()}
    if not present:
        return None
    foreign = [name for name, text in present.items() if not is_ours(text)]
    if foreign:
        return report_ok(f"{', '.join(foreign)} was not written by memctl and is left alone")
    wanted = format_units(current_place(patient.client.socket_path, None, None, ""))
    other = [
        name for name, text in wanted.items() if _parse_directives(present.get(name, "")) != _parse_directives(text)
    ]
    if other:
        return warn(f"{', '.join(other)} differs from what this version writes", INSTALL)
    return report_ok("as this version writes them")


def _parse_directives(text: str) -> list[str]:
    """Return what a unit says, without comments and what belongs to this machine."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("#", *OWN))]
