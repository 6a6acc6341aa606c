"""Conversations: record the turns of sessions, and extract summaries and facts from them in the background.

`observing` stores a turn in L0 without asking a model: `gate` refuses noise, `pairing` finds the question that the turn
answers, and `promoting` moves the oldest of more than 20 turns to L1 or, if they are unimportant, to L2.

`worker` is the background thread. It rates and embeds turns (`judging`), finds the saved memories that they change
(`comparing`) and the memories that an agent cites (`citing`), and when a conversation pauses it runs the tasks of
`extracting`: session summaries (`summarising`) and, with a language model, facts (`learning`). The queue is on disk
(`store/extraction.py`), and a task's result is committed together with the removal of its turns from the queue.

`consolidating` empties L0 on request, `running_summary` shortens a conversation for its caller, `tasks` records the
results of tasks, `session_log` lists what was done in each session, `pausing` stops recording.
"""
