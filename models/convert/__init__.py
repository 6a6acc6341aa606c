"""Convert the checkpoint of a sentence encoder to the ONNX file that the daemon runs.

Needs numpy and the `onnx` package, not PyTorch. A running daemon never imports it, since `onnx` takes about 50 MB of
memory: `memoryd.models.install` imports this package only to install a model.
"""
