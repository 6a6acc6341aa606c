"""Background jobs: the table of jobs, the thread that runs them, plans and pauses, and the jobs of the tiers.

Runs are executed one at a time on a low-priority thread. A run is applied in slices that hold the writer for about 5
ms; while clients are served, it rests after each slice as long as the slice took. A failing job backs off, and is
quarantined after several failures in a row.
"""
