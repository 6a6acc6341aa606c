"""Texts as they are stored, for new rules of credentials."""
