"""Memories: adding, duplicates, changing, reading, sharing, feedback, export and import.

An add is embedded on its worker; the writer's transaction decides whether it is new, a duplicate or a contradiction.
Statements that contradict each other are linked, turns of talk are not; an edit is judged again, and what is superseded
disagrees with nothing. `settling` says what holds of a memory that something later changes.
Feedback is one vote of each caller; `arrays/columns.py` keeps the factor of the few memories that have any, and the
stage *rank* multiplies by it. An export is in the order of ids, in batches, a record being a memory with its links; an
import writes records as they are, as one operation over several calls.
"""
