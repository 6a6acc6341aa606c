"""The demo's embedding model: installed where its progress can be seen, done without where that fails."""

import os

from memoryd.client.errors import MemorydError
from memoryd.client.memctl.model import run_models
from memoryd.client.memctl.output import note

CONFIG = "[model]\nfetch = false\n"  # of the demo's daemon: `prepare_model` has fetched it


def prepare_model() -> str:
    """Install the default model; return why there is none when that fails, for words do without."""
    try:
        if os.environ.get("MEMORYD_OFFLINE") not in (None, "", "0"):
            if any(model["installed"] and model["default"] for model in run_models("list", "--json")):
                return ""
            raise MemorydError("MEMORYD_OFFLINE is set and none is installed")
        run_models("pull", "--json")
    except (MemorydError, SystemExit) as error:
        reason = error.message if isinstance(error, MemorydError) else "it could not be fetched"
        note(f"memctl: no embedding model ({reason.rstrip('.')}): the demo goes by words only.")
        return reason
    return ""
