"""Retrieval: one pipeline, a stage per module, listed in `pipeline.PIPELINE`.

A search first makes one boolean per row of what it may return (`arrays/columns.py`). *embed* takes the query's vector
from the cache, or begins it where it may be too slow → *candidates* embeds it and searches the index while another
thread ranks by words → *replaced* lets what was superseded speak for its successor → *hot* and *active* add what was
returned here lately and all turns of L0 → *fuse* scores → *cues* adds for who, when and which it names → *cut* applies
floors → *rank* applies the profile (`PROFILES`) → *diversify* → *clean* reads rows, drops repeats, shows as one hit
what belongs together (`related`) and has questions, tool output and former states give way (`precedence`) →
*confidence* rates the hits → *remote* takes those of other machines, asked at the beginning (`remotes`) → *postprocess*
makes them. Rooms put stages of their own between these. What a search leaves behind is written after the reply
(`effects`).
"""
