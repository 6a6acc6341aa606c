"""Embedding models: text in, unit vectors out.

`load` opens an installed model, `pull` installs one of the `CATALOG`, `import_directory` installs one from a folder.
Imports nothing of the daemon or the client. Importing this package is cheap: ONNX Runtime and the tokenizer are
imported by `load`, and what only an installation needs (`onnx`, the hub client) by `pull` and `import_directory`. It
switches the telemetry of these libraries off; `session` alone imports ONNX Runtime, so that none is loaded before.
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

# Telemetry is off, for this process and those that it starts, whatever is set: of ONNX Runtime (from 1.29 on), of the
# hub's client and its transfers by hf_xet. They read this when they are imported; ONNX Runtime's own call comes too
# late, as its import already writes a device id below the cache folder and looks up its maker's host.
os.environ.update({"ORT_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_TELEMETRY": "1"})
