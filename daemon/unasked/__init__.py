"""Unasked: the memories that an agent is shown automatically, at the start of a session and with a prompt.

`unasked` answers the call. `starting` chooses the memories for a start, and counts by subject (`subjects`) those that
do not fit; `prompting` chooses those for a prompt, by the probability that `sureness` computes. `usefulness` evaluates
whether agents used the lines.
"""
