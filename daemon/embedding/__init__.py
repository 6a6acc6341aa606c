"""The embedder of the daemon: the model, the vector index in RAM, the durable queue of texts without a vector."""
