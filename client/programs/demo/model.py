"""The demo's embedding model: installed where its progress can be seen, done without where that fails."""

from memoryd.client.errors import MemorydError
from memoryd.client.programs.memctl.local import effective_settings
from memoryd.client.programs.memctl.model import pull, run_models
from memoryd.client.programs.memctl.output import print_note

CONFIG = "[model]\nfetch = false\n"  # of the demo's daemon: `prepare_model` has fetched it


def prepare_model() -> str:
    """Install the default model; return why there is none when that fails, for words do without."""
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
