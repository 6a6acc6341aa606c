"""The embedder of the daemon: the model, the vector index in RAM, the durable queue of texts without a vector.

A text beyond the model's window has vectors of its parts as well (`long_texts`), by the best of which it is found.
A model behind an API (`api`) is one `Embedder` more, with one short attempt while a client waits.
"""
