"""Retrieval: one pipeline, a stage per module, listed in `pipeline.PIPELINE`.

A search first makes one boolean per row of what it may return (`store/facts.py`). *embed* begins the query's vector
or takes it from the cache → *candidates* ranks by words while the embedding thread continues from the vector to the
index → *hot* and *active* add what was returned here lately and all turns of L0, *shared* what servers hold that this
machine does not → *fuse* scores → *expand* adds what
the graph knows, on the same scale → *cut* applies floors → *rank* applies the profile (`PROFILES`) → *diversify* →
*clean* reads rows, drops repeats and shows as one hit what belongs together (`related`) → *confidence* rates the hits
→ *postprocess* makes them. What a search leaves behind is written after the reply (`effects`).
"""
