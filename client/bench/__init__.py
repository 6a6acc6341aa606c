"""bench eval, bench pairs, bench unasked: the quality of this memoryd on data whose right answers are known.

`kinds` has a row for each kind of data; its module yields material (`material`), `evaluation` stores it and asks,
`scoring` says how good the answers are. `pairs` is about statements that contradict each other; `unasked` about what
comes up though nobody asked, which `replaying` has happen and `judging` judges.
"""
