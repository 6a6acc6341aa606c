"""Checks of the embedding model and of the embedding backlog."""

import time

from memoryd.client.programs.doctor.database import RECOVER
from memoryd.client.programs.doctor.patient import Finding, Patient, fail, report_ok, warn
from memoryd.client.programs.memctl.local import is_installed
from memoryd.client.programs.memctl.model import API, folder_options, run_models
from memoryd.client.programs.memctl.service import better_model, model_text, unread_text
from memoryd.client.programs.memctl.text_table import count_text
from memoryd.client.protocol import ModelState

LOOK_S = 0.5  # between two readings of the embedding backlog
SETTLED_S = 60.0  # a daemon with a shorter uptime may not have begun to embed
LOOK_AT_API = "look at [embedding_api]: memctl config show"
NO_MODEL = ("", "none")
IMPORT = "memctl model import DIR"


def check_model(patient: Patient) -> Finding | None:
    """Check the state of the daemon's model, or the files if no daemon answers; compare it with the settings."""
    found = _check_running(patient) if patient.status else _check_files(patient)
    kept = patient.facts["model"] if patient.facts else None
    wanted = patient.settings["model"]["name"] if patient.settings else None
    if kept and wanted and wanted not in NO_MODEL and kept != wanted and (found is None or found.state == "ok"):
        message = f"the settings name {wanted}, the database uses {kept}: `name` in [model] is for new databases"
        return warn(message, f"memctl model use {wanted}")
    return found


def _check_running(patient: Patient) -> Finding | None:
    if not patient.status:
        return None
    state = patient.status.model
    if state.state == "ready":
        failing = state.error and state.name.startswith(API)
        return warn(model_text(state), LOOK_AT_API) if failing else report_ok(model_text(state))
    if state.state in ("fetching", "loading"):
        message = f"{model_text(state)}: searches use words alone until it is ready"
        return warn(message, safe=[["memctl", "up", "--wait"]])
    fix, safe = _explain_fix(patient, state)
    return fail(f"{model_text(state)}: searches use words alone", fix, safe=safe)


def _check_files(patient: Patient) -> Finding | None:
    """Check that the model for the daemon is installed, or can be fetched."""
    kept = patient.facts["model"] if patient.facts else None
    name = str(kept or (patient.settings["model"]["name"] if patient.settings else ""))
    if not is_installed() or not patient.settings or name in NO_MODEL or name.startswith(API):
        return None
    row_in_list = next((row for row in run_models("list", "--json", *folder_options()) if row["name"] == name), None)
    if row_in_list and row_in_list["installed"]:
        return report_ok(f"{name} is installed")
    pull = [["memctl", "model", "pull", name]]
    if not row_in_list:
        return fail(f"{name} is neither installed nor in the catalogue", "memctl model list")
    if patient.settings["network"]["offline"]:
        return fail(f"{name} is not installed and not fetched: `offline` is set", IMPORT)
    if not patient.settings["model"]["fetch"]:
        return fail(f"{name} is not installed, and the daemon may not fetch it", safe=pull)
    return warn(f"{name} is not installed; the daemon fetches it ({row_in_list['size_mb']} MB)", safe=pull)


def _explain_fix(patient: Patient, model: ModelState) -> tuple[str, list[list[str]]]:
    """Return how to fix a missing or broken model: as text for the user, and as commands to run."""
    name = model.name
    if RECOVER in (model.error or ""):  # the model was ready, but its vectors could not be read
        return RECOVER, []
    if name.startswith(API):
        return LOOK_AT_API, []
    if name in NO_MODEL:
        return "memctl model list", []
    if patient.settings and patient.settings["network"]["offline"]:
        return IMPORT, []
    return "", [["memctl", "model", "pull", name]]


def check_languages(patient: Patient) -> Finding | None:
    """Check whether many memories are in languages that the model does not support."""
    if not patient.status or not patient.status.unread:
        return None
    return warn(f"{unread_text(patient.status)}: by meaning they are hardly found", better_model(patient.status))


def check_embeddings(patient: Patient) -> Finding | None:
    """Check that the embedding backlog is shrinking."""
    if not patient.status:
        return None
    pending = patient.status.pending_embeddings
    if not pending:
        return report_ok(f"{count_text(patient.status.memories, 'memory')}, none waits for its vector")
    message = f"{count_text(pending, 'memory')} without a vector yet: found by words only"
    model = patient.status.model
    if model.state not in ("ready", "fetching", "loading"):  # waiting would not help
        fix, safe = _explain_fix(patient, model)
        return warn(message, fix, safe=safe)
    if model.state == "ready" and patient.status.uptime_s > SETTLED_S and _is_stuck(patient, pending):
        return warn(f"{message}, and the number does not fall", safe=[["memctl", "jobs", "run", "embed"]])
    return warn(message, safe=[["memctl", "up", "--wait"]])


def _is_stuck(patient: Patient, pending: int) -> bool:
    time.sleep(LOOK_S)
    return patient.client.status().pending_embeddings >= pending
