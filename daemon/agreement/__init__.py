"""Agreement: compare two statements, and classify sentences, with rules and word weights instead of a model.

`statements` decides whether two statements say the same or contradict each other, `changes` how likely a turn or a
later memory changes a saved one, `claims` whether a sentence is a statement, question, order, guess or retraction. Pure
functions, part of the kernel because searches and the detection of duplicates use them.
"""
