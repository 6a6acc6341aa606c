"""Cognition: how much a turn matters, what it says in one sentence. Rules now; an LLM joins by the same interface."""
