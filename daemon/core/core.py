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
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.system.clock import Clock
from memoryd.daemon.system.timekeeper import SETTING, Timekeeper
from memoryd.daemon.tiers.active import Active
from memoryd.daemon.tiers.citations import Citations
from memoryd.daemon.tiers.hot import HotBuffer
from memoryd.daemon.tiers.recalls import Recalls

S = TypeVar("S")

log = logging.getLogger(__name__)

_KEPT_FROM = 1_000  # vectors
_TOKENS = "llm_tokens"  # setting: what the language model used today
_GIVE_WAY_S, _LOOK_AGAIN_S = 0.02, 0.001  # how long work on one thing gives way at most, how often it looks
_MOMENT = 0.1  # share of its time that background work rests when nobody else is there


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
        self.hot, self.recalls, self.citations = HotBuffer(), Recalls(), Citations()
        ledger = Ledger(self.store.read_setting(_TOKENS), partial(self.store.set_setting, _TOKENS))
        self.cognition = Cognition(llm.choose_provider(config.llm, ledger.spend, self.clock))
        self.embedding.on_active = self.cognition.wake.set  # turns of L0 wait for their vectors
        self.ending = threading.Event()  # calls under way have had their time: those in parts end after the present one
        self.has_ended = True  # after `close`: whether no thread is left at what nothing can end
        self.new_id: Callable[[], str] = lambda: secrets.token_hex(16)  # of a memory that has none
        self.options: list[str] = []  # of the process, to start it again as it is
        self.crowded: Callable[[], bool] = lambda: False  # whether clients are being served: the server says so
        self.awaited: Callable[[], bool] = lambda: (
            False
        )  # whether a client waits for an answer at this moment: as above
        self.events = Events(self.store, self.clock)
        self.effects = Effects(self.store, self.hot, self.recalls)
        self.background = Background()
        arguments = self.store, self.arrays, self.embedding, config.search, traces, self.clock
        self.sources = Sources(*arguments, self.active, self.hot, self.effects, self.state)

    def start(self) -> None:
        """Begin the background work."""
        self.store.reserve.fill()
        self.store.warm_soon()
        self.embedding.start()
        self.effects.start()

    def state(self, kind: type[S], *arguments: object) -> S:
        """Return the one object of a class that a room keeps in RAM; the first time `kind(*given)` makes it."""
        with self._states_lock:
            if kind not in self._states:
                self._states[kind] = kind(*arguments)
            state: S = self._states[kind]
            return state

    def check_going_on(self) -> None:
        """Raise `Unavailable` once calls that go on part by part have to end."""
        if self.ending.is_set():
            raise Unavailable("The daemon is stopping.", {"retry_after_ms": 100})

    def end_calls(self) -> None:
        """Have the calls under way end: they have had their time. What they would have to wait for is refused."""
        self.ending.set()
        self.embedding.interrupt()
        self.store.refuse_waiting_writes()

    def read_again(self) -> None:
        """Read again what is derived from the memories and kept in RAM: the database was repaired."""
        self.embedding.rebuild()

    def rest(self, took_s: float) -> None:
        """Rest after so much background work: as long again while clients are being served, else for a moment."""
        time.sleep(took_s * (1.0 if self.crowded() else _MOMENT))

    def give_way(self) -> None:
        """Wait while a client waits for a search or the like, but not for long.

        Long work in Python calls this often: while it runs, each step of a search waits for the interpreter.
        """
        give_up_at = time.monotonic() + _GIVE_WAY_S
        while self.awaited() and time.monotonic() < give_up_at:
            time.sleep(_LOOK_AGAIN_S)

    def close(self) -> None:
        """Stop the background work, write everything down, close the database."""
        self.background.close()
        self.effects.close()
        self.has_ended &= self.embedding.close()
        with suppress(MemorydError):  # the next start makes do with what an earlier look found
            self.store.write(self._write_clock, over_limit=True).result()
        self.store.close()
        self._keep_codes()

    def _keep_codes(self) -> None:
        """Store the codes of the vectors for the next start, if there are enough to be worth it."""
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

    def _write_clock(self, transaction: Transaction) -> None:
        database_settings.put(transaction.connection, SETTING, self.clock.update())


def make_private(folder: Path) -> None:
    """Create the data directory with mode 0700; raise `StorageFailed` when it cannot be used."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageFailed(f"The data directory {folder} cannot be made: {error.strerror}.") from None
