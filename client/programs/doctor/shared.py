"""Check of shared roots: each is reachable and has accepted all changes."""

from memoryd.client.errors import MemorydError
from memoryd.client.programs.doctor.patient import Finding, Patient, fail, report_ok, warn
from memoryd.client.programs.memctl.joining import ask_greeting
from memoryd.client.programs.memctl.text_table import count_text


def check_roots(patient: Patient) -> Finding | None:
    """Check that the server of each root answers, accepts this machine's token and refused no change."""
    if not (shared := patient.shared) or not shared.roots:
        return None
    sections = (patient.settings or {}).get("shared", {})
    for root in shared.roots:
        if root.state == "here" or root.name not in sections:
            continue
        own = sections[root.name]
        try:
            greeting = ask_greeting(root.name, own)
        except MemorydError as error:
            return fail(error.message.rstrip("."), f"memctl shared join {root.name} --dry-run")
        if greeting.namespace != root.name:
            message = f"{root.name}: the token {greeting.name} there is for {greeting.namespace}"
            return fail(message, f"memctl shared join {root.name} --token TOKEN")
        if greeting.repositories != own["repositories"]:
            message = f"{root.name} is for other repositories now: {', '.join(greeting.repositories)}"
            return warn(message, f"memctl shared join {root.name} --dry-run")
    if refused := [save for save in shared.waiting if save.refused]:
        return warn(f"{count_text(len(refused), 'save')} refused: {refused[0].refused}", "memctl shared waiting")
    if unreadable := [root.name for root in shared.roots if root.unreadable]:
        return warn(f"rows of {', '.join(unreadable)} that cannot be read were left out", "memctl shared status")
    return report_ok(f"{count_text(len(shared.roots), 'root')}: {', '.join(root.name for root in shared.roots)}")
