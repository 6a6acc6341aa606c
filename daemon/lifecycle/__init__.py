"""Lifecycle: what moves memories between the tiers, and the runs of jobs that do it in the background."""
