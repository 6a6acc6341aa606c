"""Retrieval: one pipeline, a stage per module, listed in `pipeline.PIPELINE`."""
