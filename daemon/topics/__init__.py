"""The graph of L2: clusters of memories as nodes, edges between them, topics, labels; making it and reading it.

It is derived from rows, vectors and the table `pairs`, which counts how often searches returned two memories together.
The job `cluster` makes the graph of each namespace anew, as a whole, each night (`rebuild`). Nothing is done for it
when a memory is written: what came since belongs to no node, and what left its tier or namespace is skipped by readers.
Only the differences to the graph that is there are written, in small transactions; a run that was interrupted is
completed by the next. A node is named by the id of its medoid, so that it keeps its name while its middle stays.
"""
