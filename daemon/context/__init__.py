"""Context: from memories to the few hundred tokens that an agent needs at the start of a task.

A context contains pinned memories, corrections, and the relevant hits of a search for the task, grouped by type and
cut to a budget of tokens. `given` records what each session was given, so that it gets nothing twice.
"""
