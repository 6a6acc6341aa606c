"""Handler of running summaries; who waits for a language model has a thread of its own."""

from concurrent.futures import Future

from memoryd.client.protocol import Summarize, Summarized
from memoryd.daemon.conversations import running_summary
from memoryd.daemon.core.core import Core
from memoryd.daemon.registry import handles


@handles(Summarize)
def summarize(core: Core, call: Summarize) -> "Future[Summarized]":
    """Sum up the older part of a conversation."""
    if call.wait:
        return core.workspaces.run_apart("summarize", lambda: running_summary.summarize(core, call))
    done: Future[Summarized] = Future()
    done.set_result(running_summary.summarize(core, call))
    return done
