"""Rules about language, without a model: what a text says, how much it matters.

Pure functions. They order, label or hold back; they do not delete.
"""
