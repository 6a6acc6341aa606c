"""The embedder of the daemon: the model, the vector index in RAM, the durable queue of texts without a vector.

A text that is longer than the model's window also has vectors of its parts (`long_texts`); the best part counts. A
model behind an API (`api`) is another `Embedder`, which makes only one short attempt while a client waits.
"""
