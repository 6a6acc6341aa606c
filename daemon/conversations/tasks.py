"""Record the results of tasks: a note on a success, a lesson from a failure. Long results are summarised later."""

from concurrent.futures import Future

from memoryd.client.errors import Invalid
from memoryd.client.protocol import Add, Added, CompleteTask, Metadata, NewMemory
from memoryd.daemon.conversations.promoting import CONDENSE_CHARS
from memoryd.daemon.core import limits
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import adding
from memoryd.daemon.registry import handles
from memoryd.daemon.store import extraction
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.writer import Transaction

SOURCE = "task_completion"
_DONE, _FAILED = ("note", 0.6), ("mistake-pattern", 0.8)  # type and importance


@handles(CompleteTask)
def complete(core: Core, call: CompleteTask, caller: Caller = USER) -> "Future[Added]":
    """Record the result of a task; the future is done when it is on disk."""
    if not call.output.strip():
        raise Invalid("The output is empty; describe the result of the task, or what failed and why.")
    limits.check_text("task", call.task)
    limits.check_text("session", call.session)
    kind, importance = _FAILED if call.outcome == "failed" else _DONE
    known = {"outcome": call.outcome, "task": call.task, "session": call.session}
    about: Metadata = {name: value for name, value in known.items() if value}
    head = f"{call.outcome.capitalize()}: {call.task}\n" if call.task else f"{call.outcome.capitalize()}: "
    content = f"{head}{call.output.strip()}"
    memory = NewMemory(content=content, type=kind, source=SOURCE, origin="heard", importance=importance, metadata=about)
    added = adding.add(core, Add(memory=memory, namespace=call.namespace, reach=call.reach), caller)

    def queue(transaction: Transaction) -> None:
        extraction.queue(transaction.connection, [added.result().id], "condense")
        transaction.after_commit(core.cognition.wake.set)

    if len(content) > CONDENSE_CHARS:
        added.add_done_callback(lambda done: None if done.exception() else core.store.write(queue))
    return added
