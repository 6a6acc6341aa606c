"""Agreement: what a sentence does, and which of two statements holds. Rules and weights of words, without a model.

`statements` says whether two say the same or contradict each other, `changes` how likely a turn or a later memory
changes a saved one, `claims` whether a sentence states, asks, orders, guesses or takes back. Pure functions. Searches
and duplicates use them too, so this is part of the kernel.
"""
