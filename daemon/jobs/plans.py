"""Plans made by dry runs, kept in RAM by id until they are applied or replaced by newer ones."""

import secrets
import threading
from typing import Any, NamedTuple

from memoryd.client.errors import Conflict, NotFound
from memoryd.daemon.core.work import Step

MAX_PLANS = 8
MAX_STEPS = 100_000  # of one plan, and of all plans together


class Plan(NamedTuple):
    """The steps of one dry run, the `states` of their targets then, and whether there were `more` than a plan holds."""

    job: str
    steps: list[Step]
    states: dict[str, Any]
    more: bool


class Plans:
    """The latest plans. Any thread may use it."""

    def __init__(self) -> None:
        self._plans: dict[str, Plan] = {}
        self._lock = threading.Lock()

    def keep(self, plan: Plan) -> str:
        """Keep a plan and return its id; the oldest go when there are too many."""
        id = secrets.token_hex(4)
        with self._lock:
            self._plans[id] = plan
            while len(self._plans) > 1 and (
                len(self._plans) > MAX_PLANS or sum(len(plan.steps) for plan in self._plans.values()) > MAX_STEPS
            ):
                del self._plans[next(iter(self._plans))]
        return id

    def get(self, id: str, job: str) -> Plan:
        """Return a plan; raise `NotFound`, or `Conflict` when it is one of another job."""
        with self._lock:
            plan = self._plans.get(id)
        if plan is None:
            raise NotFound(f"There is no plan {id}: it was applied, or newer plans replaced it.", {"plan": id})
        if plan.job != job:
            raise Conflict(f"The plan {id} is one of the job {plan.job}, not of {job}.", {"job": plan.job})
        return plan

    def forget_applied(self, id: str, steps: int) -> None:
        """Forget the first steps of a plan, and the whole plan if no others are left."""
        with self._lock:
            plan = self._plans.pop(id, None)
            if plan and steps < len(plan.steps):
                self._plans[id] = plan._replace(steps=plan.steps[steps:])
