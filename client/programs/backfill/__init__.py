"""Backfill: what was said in the past sessions of coding agents, taken in from the files that they left.

The readers of `client/programs/sessions` say what is in these files: of each session the words of the person and the
agent's answers are taken, as hooks would have observed them; what is left out is counted.

`finding` reads all files once; the turns wait in a file without a name until `sending` has them in their order. A turn
goes where its hook would have put it: into the namespace of the folder that it was said in, under the name of its
session, at its time. Its id follows from its agent and its id there. `placing` tells the project of folders that are
gone and of other systems.

The call `backfill` (`daemon/backfill`) keeps the turns of one session as memories at once, in L2, as what is old is not
recent. They do not pass through L0: the operation log does not record what enters it, and what leaves it belongs to the
run of a job, so neither could be taken back as a whole. A turn is known by its id, or by its session and text (hooks
give ids of their own); the gate, duplicates, importance, question and answer are as `observe` has them. A long session
is several calls; each has some turns of those around it, so that an answer finds its question. Before each turn it
gives way to searches and other calls that somebody waits for. No summaries or facts are made of past sessions.

A run is one operation, which `undo` takes back. Its id is in the file `backfill.running` of the data directory until
the run is done, so that one that was killed goes on within the same operation. What is there already is found by its
ids, so where a run was broken off need not be known.
"""
