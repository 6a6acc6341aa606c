"""Unasked: the memories that an agent is shown automatically, at the start of a session and beside a prompt.

`starting` chooses the former and counts by `subjects` what it has no room for, `prompting` chooses the latter, as sure
as `sureness` says; `unasked` answers the call. `usefulness` counts what became of it.
"""
