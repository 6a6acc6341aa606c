"""The embedder of the daemon: the model, the vector index in RAM, the durable queue of texts without a vector.

A model behind an API (`api`) is one `Embedder` more, with one short attempt while a client waits.
"""
