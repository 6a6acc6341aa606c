"""Embedding models: text in, unit vectors out.

`load` opens an installed model, `pull` installs one of the `CATALOG`, `import_directory` installs one from a folder.
It imports nothing of the daemon or the client. Importing this package is cheap: `load` imports ONNX Runtime and the
tokenizer; `pull` and `import_directory` import the packages for installations (`onnx`, the hub client). This module
switches the telemetry of these libraries off; only `session` imports ONNX Runtime, so that it is never loaded before.
"""

import os

from memoryd.models.calibration import Calibration, Floors, calibrate, edition
from memoryd.models.catalog import CATALOG, DEFAULT, ModelSpec
from memoryd.models.embedder import Embedder, load
from memoryd.models.errors import ModelBroken, ModelError, ModelMissing, ModelUnreachable
from memoryd.models.folder import Manifest, default_models_dir, installed, read_manifest, verify
from memoryd.models.install import ReportStage, import_directory, pull, remove, sweep

__all__ = [
    "CATALOG",
    "DEFAULT",
    "Calibration",
    "Embedder",
    "Floors",
    "Manifest",
    "ModelBroken",
    "ModelError",
    "ModelMissing",
    "ModelSpec",
    "ModelUnreachable",
    "ReportStage",
    "calibrate",
    "default_models_dir",
    "edition",
    "import_directory",
    "installed",
    "load",
    "pull",
    "read_manifest",
    "remove",
    "sweep",
    "verify",
]

# Switch off the telemetry of ONNX Runtime (since 1.29), of the hub's client and of hf_xet, in this process and its
# children, even if the user has set these variables. They are read on import. ONNX Runtime's own function comes too
# late: its import already writes a device id below the cache folder and looks up its vendor's host.
os.environ.update({"ORT_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_TELEMETRY": "1"})
