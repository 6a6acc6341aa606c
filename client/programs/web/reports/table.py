"""The table of reports: each row reads what it needs with a client and a query."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from memoryd.client.programs.topics.page import read_node, read_topics
from memoryd.client.programs.web.reports.given import read_given, read_never
from memoryd.client.programs.web.reports.health import read_health, read_progress
from memoryd.client.programs.web.reports.jobs import read_jobs, read_plan
from memoryd.client.programs.web.reports.memory import read_memory
from memoryd.client.programs.web.reports.search import read_found, read_recent, read_trace, read_why
from memoryd.client.programs.web.reports.tiers import read_tiers
from memoryd.client.transport.aio import AsyncClient

ReportBuilder = Callable[[AsyncClient, Mapping[str, str]], Awaitable[Any]]

REPORTS: dict[str, ReportBuilder] = {
    "found": read_found,
    "given": read_given,
    "health": read_health,
    "jobs": read_jobs,
    "memory": read_memory,
    "never": read_never,
    "node": read_node,
    "plan": read_plan,
    "progress": read_progress,
    "recent": read_recent,
    "tiers": read_tiers,
    "topics": read_topics,
    "trace": read_trace,
    "why": read_why,
}
