"""Conversations: turns are observed and judged, leave L0, and summaries and facts are made of them.

**Observing** (`observing`, `gate`) uses rules alone. In the writer's transaction a turn is compared with equal
texts and with what its session was given, linked to the question that it answers, whoever asked, journaled in `turns`,
and the oldest of more than 20 leave L0 (`promoting`): to L1, or with low importance to L2. None is dropped.
`tiers/active` holds the same rings in RAM, updated after each commit.

**The extraction worker** (`worker`) is the one thread for everything that is made of turns later. It asks a provider
(`llm/provider.py`: rules or a language model), and the rules when that fails, but for facts. Where there is a language
model, a second thread does what needs none.

**Judging** (`judging`) works off the extraction queue: it rates turns, makes the vectors of those in L0, condenses
what was promoted, and compares turns and added memories with the saved memories that they may change (`comparing`).

**Extracting** (`extracting`) works on whole conversations once they rest. `observe` queues accepted turns for each task
of their conversation, and when it is due (`store/extraction.py`). The oldest queued turns of a due task are given to
its function; one transaction writes the result and removes exactly these turns from the queue, so a crash neither loses
nor repeats any. *Summaries* (`summarising`): the next one of a session supersedes the one before. *Facts* (`learning`):
a language model names them, without one there are none; they name their turns, which stay; what is known already is
evidence, what disagrees is linked. Between tasks rooms have their turn (topics are named). `log` reads what was done,
session by session.
"""
