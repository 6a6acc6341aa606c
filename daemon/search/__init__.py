"""Retrieval: one pipeline, a stage per module, listed in `pipeline.PIPELINE`.

A search first makes a mask of the rows that it may return (`arrays/columns.py`). *embed* looks the query's vector up in
the cache → *candidates* embeds it if needed and searches vectors and full text → *remote* adds the candidates of other
machines (`remotes`) → *replaced* finds memories by the text of those that they superseded → *hot* adds what was
returned here lately, *active* the turns of L0 → *fuse* computes a score → *cues* adds bonuses for speaker, time and
names → *cut* applies floors → *rank* applies the profile (`PROFILES`) → *diversify* → *clean* reads the rows, drops
repeats, merges linked rows into one hit (`related`) and moves questions, tool output and outdated memories down
(`precedence`, `apart`) → *confidence* rates the hits → *postprocess* builds the reply. Rooms insert stages of their
own. Side effects are written after the reply (`effects`).
"""
