"""Background jobs: one table, one executor with plan, dry run and pause, and the jobs of the tiers.

Runs go one at a time on a low-priority thread; slices hold the writer for about 5 ms, and while clients are served
a run rests after each slice as long as it took. A failing job backs off and is quarantined after several failures
in a row.
"""
