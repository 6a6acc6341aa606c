"""Rules that classify and rate texts without a language model.

Pure functions. Their results rank, label or withhold texts; nothing is deleted because of them.
"""
