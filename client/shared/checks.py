"""Checks of doctor: is what is shared with other machines exchanged."""

from memoryd.client.doctor.patient import Finding, Patient, fail, report_ok, warn
from memoryd.client.memctl.table import count_text, shorten, to_one_line

_REASON_CHARS = 120


def check_shared(patient: Patient) -> Finding | None:
    """Look for roots whose exchange with their server fails, and for what waits for a person."""
    roots = patient.stats.daemon.shared if patient.stats and patient.stats.daemon else []
    if not roots:
        return None
    for root in roots:
        if root.state in ("refused", "old"):
            return fail(f"{root.root} is not exchanged: {to_one_line(root.error)}", "memctl shared status")
    for root in roots:
        if root.state == "unconfirmed":
            return warn(f"{root.root} is not exchanged: {root.error}", f"memctl shared add {root.root}")
        if root.state == "offline":
            waiting = count_text(root.waiting, "change")
            return warn(f"the server of {root.root} does not answer; {waiting} wait here", "memctl shared status")
        if root.refused:
            reason = shorten(to_one_line(root.refused[0].reason), _REASON_CHARS)
            return warn(
                f"{count_text(len(root.refused), 'memory')} of {root.root} stay here: {reason}", "memctl shared"
            )
        if root.conflicts:
            message = f"{count_text(root.conflicts, 'memory')} of {root.root} have two versions"
            return warn(message, "memctl shared conflicts")
        if root.error:
            return warn(f"{root.root}: {to_one_line(root.error)}", "memctl shared migrate")
    return report_ok(f"{count_text(len(roots), 'root')} shared, all is exchanged")


AREAS = {"Several machines": {"shared": check_shared}}
