"""Context: from memories to the few hundred tokens that an agent needs at the start of a task.

A context is a search, the hits above the model's floor, what is pinned and what corrected an agent, put into groups and
cut to a budget that the tokenizer confirms. What a session was given is noted in `given`, so it gets nothing twice.
"""
