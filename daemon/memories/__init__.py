"""Memories: add, change, read, share, rate, export and import them.

An add is embedded on its worker thread; the writer's transaction decides whether the memory is new, a duplicate or
contradicts another one (`adding`, `duplicates`). Contradicting statements are linked, turns are not, and superseded
memories contradict nothing. `settling` stores whether a memory or a later statement is valid. Each caller has one vote
on a memory; `arrays/columns.py` keeps the resulting factors in RAM, and the search stage `rank` multiplies by them.
Exports are in batches in the order of ids; an import writes records unchanged, as one operation over several calls.
"""
