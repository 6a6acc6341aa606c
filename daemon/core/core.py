"""The core: store, embedder, traces and clock in one object that every handler works with."""

import logging
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from memoryd.client.errors import MemorydError, StorageFailed, Unavailable
from memoryd.daemon.arrays.arrays import Arrays
from memoryd.daemon.config import Config
from memoryd.daemon.core.background import Background
from memoryd.daemon.core.events import Events
from memoryd.daemon.core.unread import UnreadSample
from memoryd.daemon.embedding.embedder import Embedding, Fetcher, Loader
from memoryd.daemon.llm import llm
from memoryd.daemon.llm.chat import Ledger
from memoryd.daemon.llm.provider import Cognition
from memoryd.daemon.search.effects import Effects
from memoryd.daemon.search.retrieval import Sources
from memoryd.daemon.search.traces import TraceStore
from memoryd.daemon.store import codes, database_settings
from memoryd.daemon.store.pauses import Pauses
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.tokens import AccessTokens
from memoryd.daemon.system.clock import Clock
from memoryd.daemon.system.timekeeper import SETTING, Timekeeper
from memoryd.daemon.tiers.active import Active
from memoryd.daemon.tiers.hot import HotBuffer
from memoryd.daemon.tiers.recalls import Recalls

S = TypeVar("S")

log = logging.getLogger(__name__)

_KEPT_FROM = 1_000  # vectors
_TOKENS = "llm_tokens"  # setting: usage of the language model today
_GIVE_WAY_S, _LOOK_AGAIN_S = 0.02, 0.001  # how long background work waits for clients at most, and how often it checks
_MOMENT = 0.1  # share of its time that background work sleeps when there are no clients


class Core:
    """The memory of one data directory. `clock` gives UTC seconds; tests inject their own."""

    def __init__(
        self,
        folder: Path,
        config: Config,
        models_folder: Path,
        load: Loader,
        fetch: Fetcher | None = None,
        clock: Clock = time.time,
    ) -> None:
        make_private(folder)
        self.folder, self.config = folder, config
        self.arrays = Arrays()
        self.store = Store(folder, config.storage.max_size_mb * 1_000_000, self.arrays)
        self.clock = Timekeeper(clock, self.store.read_setting(SETTING))
        self.supervisor = self.store.supervisor
        self.supervisor.clock = self.clock
        self.tokens = AccessTokens(self.store, folder, self.clock, config.access.require_token)
        self.embedding = Embedding(self.store, self.arrays, config.model, models_folder, load, fetch)
        self._states: dict[type[Any], Any] = {}
        self._states_lock = threading.Lock()
        traces = TraceStore()
        with self.store.reading() as connection:
            self.active = Active(connection)
            self.pauses = Pauses(connection, config.observe.never, config.observe.only)
        self.languages = UnreadSample(self.store, self.active)
        self.hot, self.recalls = HotBuffer(), Recalls()
        ledger = Ledger(self.store.read_setting(_TOKENS), partial(self.store.set_setting, _TOKENS))
        self.cognition = Cognition(llm.choose_provider(config.llm, ledger.spend, self.clock))
        self.embedding.on_active = self.cognition.wake.set  # set when turns of L0 have no vectors yet
        self.ending = (
            threading.Event()
        )  # set when running calls must end; those that run in parts end after the current part
        self.has_ended = True  # after `close`: whether all threads have ended
        self.new_id: Callable[[], str] = lambda: secrets.token_hex(16)  # for memories without one of their own
        self.options: list[str] = []  # options of the process, to restart it with the same ones
        self.crowded: Callable[[], bool] = lambda: False  # whether any clients are connected; set by the server
        self.awaited: Callable[[], bool] = lambda: False  # whether a client is waiting for a reply; set by the server
        self.events = Events(self.store, self.clock)
        self.effects = Effects(self.store, self.hot, self.recalls)
        self.background = Background()
        arguments = self.store, self.arrays, self.embedding, config.search, traces, self.clock
        self.sources = Sources(*arguments, self.active, self.hot, self.effects, self.state)

    def start(self) -> None:
        """Start the background work."""
        self.store.reserve.fill()
        self.store.warm_soon()
        self.embedding.start()
        self.effects.start()

    def state(self, kind: type[S], *arguments: object) -> S:
        """Return the single object of a class that another package keeps in RAM; the first call creates it."""
        with self._states_lock:
            if kind not in self._states:
                self._states[kind] = kind(*arguments)
            state: S = self._states[kind]
            return state

    def check_going_on(self) -> None:
        """Raise `Unavailable` when calls that run in parts have to end."""
        if self.ending.is_set():
            raise Unavailable("The daemon is stopping.", {"retry_after_ms": 100})

    def end_calls(self) -> None:
        """Make the running calls end: they get errors instead of waiting for anything."""
        self.ending.set()
        self.embedding.interrupt()
        self.store.writer.refuse_waiting()

    def rest(self, took_s: float) -> None:
        """Sleep after `took_s` of background work: as long again if clients are connected, else a fraction of that."""
        time.sleep(took_s * (1.0 if self.crowded() else _MOMENT))

    def give_way(self, limit_s: float = _GIVE_WAY_S) -> None:
        """Wait while a client waits for a reply, up to a limit.

        Long work in Python calls this often, since it slows down searches, which need the interpreter's lock.
        """
        give_up_at = time.monotonic() + limit_s
        while self.awaited() and time.monotonic() < give_up_at:
            time.sleep(_LOOK_AGAIN_S)
            if not self.awaited():
                time.sleep(_LOOK_AGAIN_S)  # a client that has its reply may call again at once

    def close(self) -> None:
        """Stop the background work, write pending data and close the database."""
        self.background.close()
        self.effects.close()
        self.has_ended &= self.embedding.close()
        with suppress(MemorydError):  # the next start uses an earlier result
            self.store.write(
                lambda one: database_settings.put(one.connection, SETTING, self.clock.update()), over_limit=True
            ).result()
        self.store.close()
        self._keep_codes()

    def _keep_codes(self) -> None:
        """Save the codes of the vectors for the next start, if there are enough for that to be faster."""
        generation, path = self.embedding.active, self.store.path
        if generation is None or len(generation.index) < _KEPT_FROM:
            return
        waiting = [*generation.pending, *generation.failing]
        try:
            header = codes.CodesHeader(
                codes.read_identity(path), generation.embedder.fingerprint, generation.model, waiting
            )
            codes.write(path, header, generation.dump())
        except OSError as error:
            log.warning("the codes of the vectors could not be kept, the next start makes them again: %s", error)


def make_private(folder: Path) -> None:
    """Create the data directory with mode 0700; raise `StorageFailed` when it cannot be used."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageFailed(f"The data directory {folder} cannot be made: {error.strerror}.") from None
