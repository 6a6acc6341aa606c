"""Reports: what the page only shows, composed here of parts that it draws one way (`parts`).

Each row of `REPORTS` reads what it needs with a client and a query; those of a capability are in its module `page`.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from memoryd.client.capabilities import list_modules
from memoryd.client.transport.aio import AsyncClient
from memoryd.client.web.reports.given import read_given, read_never
from memoryd.client.web.reports.health import read_health, read_progress
from memoryd.client.web.reports.jobs import read_jobs, read_plan
from memoryd.client.web.reports.memory import read_memory
from memoryd.client.web.reports.search import read_found, read_recent, read_trace, read_why
from memoryd.client.web.reports.tiers import read_tiers

ReportBuilder = Callable[[AsyncClient, Mapping[str, str]], Awaitable[Any]]

REPORTS: dict[str, ReportBuilder] = {
    "found": read_found,
    "given": read_given,
    "health": read_health,
    "jobs": read_jobs,
    "memory": read_memory,
    "never": read_never,
    "plan": read_plan,
    "progress": read_progress,
    "recent": read_recent,
    "tiers": read_tiers,
    "trace": read_trace,
    "why": read_why,
}


@cache
def list_reports() -> dict[str, ReportBuilder]:
    """Return all reports: those of the page and those of capabilities."""
    modules = map(import_module, list_modules("client", "page").values())
    return REPORTS | {name: report for module in modules for name, report in module.REPORTS.items()}
