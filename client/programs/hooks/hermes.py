"""A memory provider for Hermes Agent, which handles provider events of Hermes like hooks of other agents.

Hermes finds it through the entry point `memoryd` of `hermes_agent.memory_providers`; Hermes 0.19 and older have no
entry points and need a file (docs/agents.md). Hermes's own memory (MEMORY.md, USER.md and their tool) is not changed.
As with hooks, calls that cannot be sent are spooled, and sent at the next event for which the daemon answers.
"""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec
from agent.memory_provider import MemoryProvider

from memoryd.client.programs.hooks import answering, hook, hosts, spool
from memoryd.client.programs.hooks.answering import EventContext
from memoryd.client.programs.hooks.wire import CallRefused, DaemonLink, Silent

_LIKE = "claude-code"  # the host whose fields are used for events


class MemorydProvider(MemoryProvider):
    """Adds memories of the project to the first prompt of a session, and to prompts that they match; records turns."""

    def __init__(self) -> None:
        self._session, self._source, self._is_user = "", "startup", True

    @property
    def name(self) -> str:
        """The name in Hermes's configuration."""
        return "memoryd"

    def is_available(self) -> bool:
        """Return True, since a daemon is started with a session if none runs."""
        return True

    def initialize(self, session_id: str, **options: Any) -> None:
        """Start a session; prompts of scheduled runs and of subagents are not recorded, as no user wrote them."""
        self._session, self._source = session_id, "startup"
        self._is_user = options.get("agent_context", "primary") == "primary"

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return the memories for a prompt, after those for the start of a session."""
        parts = [self._ask(self._event(hosts.START, source=self._source))] if self._source else []
        self._source = ""
        return "\n".join(filter(None, [*parts, self._ask(self._event(hosts.PROMPT, prompt=query))]))

    def sync_turn(
        self, user_content: str, assistant_content: str, *, session_id: str = "", messages: Any = None
    ) -> None:
        """Record a prompt and its answer."""
        if self._is_user:
            prompt = self._event(hosts.PROMPT, prompt=user_content)
            self._note(prompt, self._event(hosts.STOP, last_assistant_message=assistant_content))

    def on_pre_compress(self, messages: Sequence[Any]) -> str:
        """Send the session's memories again with the next prompt; add nothing to Hermes's summary."""
        self._note(self._event(hosts.COMPACT))
        self._source = "compact"
        return ""

    def on_session_switch(self, new_session_id: str, *, reset: bool = False, **options: Any) -> None:
        """Switch to another session."""
        self._session = new_session_id
        if reset:
            self._source = "startup"

    def on_session_end(self, messages: Sequence[Any]) -> None:
        """Report the end of the session, so that it is summarised."""
        self._note(self._event(hosts.END))

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """Return no tools: they come from the MCP server."""
        return []

    def _event(self, event: str, **fields: str) -> EventContext:
        given = {"session_id": self._session, "cwd": os.getcwd(), **fields}
        return answering.read_event(event, _LIKE, msgspec.json.encode(given))

    def _ask(self, event: EventContext) -> str:
        with suppress(Silent, CallRefused):
            link = hook.open_link(event.event)
            try:
                return answering.context(link, event)
            finally:
                link.close()
        return ""

    def _note(self, *events: EventContext) -> None:
        calls = [call for event in events for call in answering.list_calls(event)]
        link = None
        with suppress(Silent):
            link = DaemonLink(time.monotonic() + hook.LIMIT_S)
            with suppress(CallRefused):
                spool.replay(link, time.monotonic() + hook.REPLAY_SHARE * hook.LIMIT_S)
        hook.note(link, calls)
        if link is not None:
            link.close()


def register(context: Any) -> None:
    """Register the provider with Hermes."""
    context.register_memory_provider(MemorydProvider())
