"""Handlers of the calls about sessions and tasks."""

from concurrent.futures import Future

from memoryd.client.protocol import Added, CompleteTask, Done, EndSession, ResetSession, SessionEnded
from memoryd.daemon.context import preparing
from memoryd.daemon.dispatch import Context, handles
from memoryd.daemon.lifecycle import tasks, thinking


@handles(EndSession)
def end_session(context: Context, call: EndSession) -> "Future[SessionEnded]":
    """Think about a session now."""
    return thinking.end(context.core, call)


@handles(ResetSession)
def reset_session(context: Context, call: ResetSession) -> "Future[Done]":
    """Forget what a session was given."""
    return preparing.reset(context.core, call)


@handles(CompleteTask)
def complete_task(context: Context, call: CompleteTask) -> "Future[Added]":
    """Keep what came of a task."""
    return tasks.complete(context.core, call, context.caller)
