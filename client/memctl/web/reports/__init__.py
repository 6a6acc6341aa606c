"""Reports: what the page only shows, composed here of parts that it draws one way (`parts`).

Each row of `REPORTS` reads what it needs with a client and a query.
"""

from collections.abc import Awaitable, Callable, Mapping

from memoryd.client.memctl.web.reports.health import read_health
from memoryd.client.memctl.web.reports.jobs import read_jobs, read_plan
from memoryd.client.memctl.web.reports.memory import read_memory, read_node
from memoryd.client.memctl.web.reports.parts import Part
from memoryd.client.memctl.web.reports.search import read_recent, read_trace, read_why
from memoryd.client.memctl.web.reports.tiers import read_tiers
from memoryd.client.transport.aio import AsyncClient

REPORTS: dict[str, Callable[[AsyncClient, Mapping[str, str]], Awaitable[Part]]] = {
    "health": read_health,
    "jobs": read_jobs,
    "memory": read_memory,
    "node": read_node,
    "plan": read_plan,
    "recent": read_recent,
    "tiers": read_tiers,
    "trace": read_trace,
    "why": read_why,
}
