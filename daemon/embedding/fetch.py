"""Fetch a missing model in a separate process, so that the daemon never loads the packages for a conversion."""

import subprocess
import sys
import threading
from pathlib import Path

from memoryd.client.errors import ModelUnavailable
from memoryd.client.offline import is_offline

_POLL_S = 0.1


def fetch(name: str, folder: Path, closing: threading.Event) -> None:
    """Install a model into the models folder; raise `ModelUnavailable`. Stops early when the daemon closes."""
    if is_offline():
        raise ModelUnavailable(f"The model {name} is not installed and not fetched: `offline` is set.")
    command = [sys.executable, "-m", "memoryd.models", "pull", name, "--dir", str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as child:
        while child.poll() is None:
            if closing.wait(_POLL_S):
                child.terminate()
        words = child.stderr.read().decode("utf-8", "replace").strip().splitlines() if child.stderr else []
    if child.returncode:
        reason = words[-1] if words else f"exit code {child.returncode}"
        raise ModelUnavailable(f"The model {name} could not be fetched: {reason}")
