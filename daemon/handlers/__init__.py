"""Handlers that belong to the server. Importing this package imports every module that registers handlers."""

from memoryd.daemon.context import preparing
from memoryd.daemon.core import adding, adding_many, changing, feedback, graph, reading, sharing, transfer
from memoryd.daemon.handlers import (
    access,
    administration,
    context,
    dreams,
    events,
    jobs,
    notes,
    statistics,
    summaries,
    tiers,
    upkeep,
    workspaces,
)
from memoryd.daemon.lifecycle import clustering_calls, observing, reporting, seeding, tasks, thinking
from memoryd.daemon.search import pipeline, whynot
from memoryd.daemon.workspaces import writing
