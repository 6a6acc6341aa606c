"""The tiers in RAM: turns of L0, the hot buffer, and the memories returned to each session.

The memories returned to a session are in RAM only (`recalls`): stored, they could outlive a deleted memory.
"""
