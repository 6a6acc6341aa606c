"""A memory provider for Hermes Agent: what hooks do for other agents, at the events that Hermes has for providers.

Hermes finds it by the entry point `memoryd` of `hermes_agent.memory_providers`; Hermes 0.19 and older have no entry
points and need a file (docs/agents.md). Its own memory (MEMORY.md, USER.md and the tool for them) stays as it is.
As with hooks, what the daemon does not take now is spooled, and sent by the next event that finds it.
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

_LIKE = "claude-code"  # whose fields events are given in


class MemorydProvider(MemoryProvider):
    """Memories of the project beside a session's first prompt and where they matter; turns are observed."""

    def __init__(self) -> None:
        self._session, self._source, self._is_user = "", "startup", True

    @property
    def name(self) -> str:
        """The name in Hermes's configuration."""
        return "memoryd"

    def is_available(self) -> bool:
        """Return that nothing else is needed: a daemon that is away is started at a session's start."""
        return True

    def initialize(self, session_id: str, **options: Any) -> None:
        """Begin a session; the prompts of scheduled runs and of agents below another are nobody's words."""
        self._session, self._source = session_id, "startup"
        self._is_user = options.get("agent_context", "primary") == "primary"

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return what the session is to know now."""
        parts = [self._ask(self._event(hosts.START, source=self._source))] if self._source else []
        self._source = ""
        return "\n".join(filter(None, [*parts, self._ask(self._event(hosts.PROMPT, prompt=query))]))

    def sync_turn(
        self, user_content: str, assistant_content: str, *, session_id: str = "", messages: Any = None
    ) -> None:
        """Take note of a prompt and its answer."""
        if self._is_user:
            prompt = self._event(hosts.PROMPT, prompt=user_content)
            self._note(prompt, self._event(hosts.STOP, last_assistant_message=assistant_content))

    def on_pre_compress(self, messages: Sequence[Any]) -> str:
        """Have the session be given again what is taken from it; add nothing to its summary."""
        self._note(self._event(hosts.COMPACT))
        self._source = "compact"
        return ""

    def on_session_switch(self, new_session_id: str, *, reset: bool = False, **options: Any) -> None:
        """Go on in another session."""
        self._session = new_session_id
        if reset:
            self._source = "startup"

    def on_session_end(self, messages: Sequence[Any]) -> None:
        """Have the session be summed up."""
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
    """Hand the provider to Hermes: `context.register_memory_provider`."""
    context.register_memory_provider(MemorydProvider())
