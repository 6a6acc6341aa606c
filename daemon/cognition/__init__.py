"""Cognition: how much a turn matters and what it says in one sentence. Rules here; an LLM joins by the same interface."""
