"""Switch off telemetry of libraries, for this process and those that it starts.

The libraries read these variables when they are imported. ONNX Runtime's own call comes too late: its import
already writes a device id below the cache folder and looks up its maker's host.
"""

import os

VARIABLES = (
    "ORT_DISABLE_TELEMETRY",  # ONNX Runtime, from 1.29 on
    "HF_HUB_DISABLE_TELEMETRY",  # the client of the Hugging Face hub, and its transfers by hf_xet
)


def switch_off() -> None:
    """Set the variables, overriding values that are set."""
    os.environ.update(dict.fromkeys(VARIABLES, "1"))
