"""The graph of L2: clusters of similar memories as nodes, edges between them, topics, and labels.

It is derived from rows, vectors and the table `pairs`, which counts how often searches returned two memories together.
The job `cluster` rebuilds the graph of each namespace every night (`rebuild`). Writes of memories do not update it: new
memories belong to no node until then, and readers skip memories that have left L2 or the namespace. A rebuild writes
only the differences, in small transactions; if it is interrupted, the next one completes it. Labels are made by rules
(`label_words`); where there is a language model, it replaces them later (`naming`). A node is named by the id of its
medoid, so it keeps its name as long as that memory stays the most central one.
"""
