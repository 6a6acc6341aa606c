"""Open sessions of ONNX Runtime that use little memory and no busy threads.

No other module imports ONNX Runtime (see `models/__init__.py`).
"""

from pathlib import Path

import onnxruntime

from memoryd.models.errors import ModelBroken

ERRORS_ONLY = 3


def open_session(model: Path | bytes, threads: int, fuse: bool = False) -> onnxruntime.InferenceSession:
    """Open a model file, or its bytes, for `threads` threads per call; raise ModelBroken if it cannot be run.

    The arena would never free the buffers of the largest text (60 to 100 MB) and saves nothing with one text per run.
    Spinning would keep cores busy between calls. A graph converted by memoryd is fused already, and fusing it again
    would restore operators that are slower on a CPU (SkipLayerNormalization). A published one needs `fuse`: without it
    the attention of 512 tokens takes 280 MB instead of 30.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    options.log_severity_level = ERRORS_ONLY
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_EXTENDED if fuse else levels.ORT_ENABLE_BASIC
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        source = str(model) if isinstance(model, Path) else model
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's errors share no base class below Exception
        name = model.name if isinstance(model, Path) else "the model"
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelBroken(f"{name} cannot be run ({reason})") from error
