"""The call `summarize`: rules answer at once; with `wait` a language model is asked on its own thread."""

import logging
from concurrent.futures import Future

from memoryd.client.protocol import Summarize, Summarized
from memoryd.daemon.context.counting import Counter, build_counter
from memoryd.daemon.core.core import Core
from memoryd.daemon.language import summary_plan
from memoryd.daemon.language.summary_plan import SummaryPlan
from memoryd.daemon.llm.provider import RULES
from memoryd.daemon.registry import handles

_READ_CHARS = 24_000  # the newest part of the conversation that a language model is given

log = logging.getLogger(__name__)


@handles(Summarize)
def handle(core: Core, call: Summarize) -> "Future[Summarized]":
    """Summarise the older part of a conversation."""
    by = build_counter(core)
    if call.wait:
        return core.background.run("summarize", lambda: summarize(core, call, by))
    done: Future[Summarized] = Future()
    done.set_result(summarize(core, call, by))
    return done


def summarize(core: Core, call: Summarize, by: Counter) -> Summarized:
    """Return the conversation within its budget."""
    plan = summary_plan.make_plan(call, by.count)
    summary, author = _summary(core, call, plan, by) if plan.older else (None, "")
    done = summary_plan.finish(call, plan, summary, by.count)
    done.tokenizer, done.by = by.name, author
    return done


def _summary(core: Core, call: Summarize, plan: SummaryPlan, by: Counter) -> tuple[str, str]:
    """Return the new summary and who wrote it."""
    former = plan.running.summary if plan.running else ""
    provider = core.cognition.provider
    if call.wait and provider is not RULES:
        try:
            text = provider.digest(_select_spoken(plan), former, call.max_summary_tokens)
            if summary := summary_plan.clip(text, call.max_summary_tokens, by.count):
                return summary, provider.name
        except Exception as error:
            log.warning("%s could not summarise a conversation, rules are used instead: %s", provider.name, error)
    return summary_plan.extract(plan.older, former, call.max_summary_tokens, by.count), RULES.name


def _select_spoken(plan: SummaryPlan) -> list[tuple[str, str]]:
    """Return the newest texts to summarise, up to `_READ_CHARS` characters and at least one."""
    latest, chars = list[tuple[str, str]](), 0
    for message in reversed(plan.older):
        chars += len(message.content)
        if latest and chars > _READ_CHARS:
            break
        if message.content.strip():
            latest.insert(0, (message.role, message.content))
    return latest
