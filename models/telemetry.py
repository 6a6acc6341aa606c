"""What libraries report to their makers is switched off, for this process and those that it starts.

The libraries read these variables when they are imported. ONNX Runtime's own call comes after its import, which by then
has written a device id below the cache folder and started to look up its maker's host.
"""

import os

VARIABLES = (
    "ORT_DISABLE_TELEMETRY",  # ONNX Runtime, from 1.29 on
    "HF_HUB_DISABLE_TELEMETRY",  # the client of the Hugging Face hub, and its transfers by hf_xet
)


def switch_off() -> None:
    """Set the variables, whatever they are."""
    os.environ.update(dict.fromkeys(VARIABLES, "1"))
