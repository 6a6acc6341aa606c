"""Install the demo's embedding model, with a visible progress bar; if that fails, the demo runs without a model."""

from memoryd.client.errors import MemorydError
from memoryd.client.programs.memctl.local import effective_settings
from memoryd.client.programs.memctl.model import pull, run_models
from memoryd.client.programs.memctl.output import print_note

CONFIG = "[model]\nfetch = false\n"  # for the demo's daemon, since `prepare_model` fetches the model


def prepare_model() -> str:
    """Install the default model; return why that failed, empty if it is installed. Searches by words need no model."""
    try:
        settings = effective_settings()
        if settings["model"]["fetch"] and not settings["network"]["offline"]:
            pull()
        elif not any(model["installed"] and model["default"] for model in run_models("list", "--json")):
            which = "`offline` is set" if settings["network"]["offline"] else "`fetch = false` is set"
            raise MemorydError(f"none is installed, and {which}")
    except (MemorydError, SystemExit) as error:
        reason = error.message if isinstance(error, MemorydError) else "it could not be fetched"
        print_note(f"memctl: no embedding model ({reason.rstrip('.')}): the demo searches by words only.")
        return reason
    return ""
