"""The tiers in RAM: turns of L0, the hot buffer, and what sessions were given.

What a session was given is kept in RAM only (`recalls`): a turn in L0 could outlive a deleted memory or show a
private one.
"""
