"""Turn the checkpoint of a sentence encoder into the ONNX file that the daemon runs.

Needs numpy and the `onnx` package, never PyTorch. Nothing here is imported by a running daemon: `onnx` costs about
50 MB of memory, so `memoryd.models.install` imports this package only while it installs a model.
"""
