"""Backfill: import past sessions of coding agents from the files in which the agents record them.

`finding` reads all files once, with the readers of `client/programs/sessions`: the user's prompts and the agent's
answers, as hooks would have observed them. `sending` then sends the turns in order. A turn is stored in the namespace
of its folder and with the time at which it was said; `placing` finds the project of deleted or foreign folders.

The daemon (`daemon/backfill`) stores the turns of a session as memories in L2, without passing through L0: entering L0
is not recorded in the operation log, so an undo could not revert it.

A run is one operation, which `undo` reverts. Its id is in `backfill.running` in the data directory until the run is
finished, so that a run that was killed continues within the same operation; stored turns are recognised by their ids.
"""
