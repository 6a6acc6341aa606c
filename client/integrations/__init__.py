"""Adapters for agent frameworks. Each imports its framework; no other module does."""
