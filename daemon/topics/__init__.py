"""The graph of L2: clusters of memories as nodes, edges between them, topics, names; reading and changing it.

It is derived from rows and vectors. Triggers keep `backlog`: the memories of L2 that have no node, or whose text,
namespace or tier changed. The job `cluster` drafts what each namespace's nodes will be (`draft`): memories join in
order (`clusters`), nodes over 20 members are split, similar ones merged, what changed is named by its terms; topics
(Leiden, `groups`) are computed again when a fiftieth of the nodes is newer. Each difference to the database is one
small step, checked again where it is written (`writes`). A node's centroid is the mean of `size` unit vectors;
where its members are more or fewer, the next run computes it again, so a crash between two steps is repaired.
"""
