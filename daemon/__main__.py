"""The composition root: parts are started in order and stopped in reverse.

memoryd [--data-dir DIR] [--socket PATH] [--config FILE] [--log-level LEVEL]
"""

import argparse
import asyncio
import faulthandler
import gc
import logging
import os
import signal
import sys
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from random import Random
from time import time
from typing import TYPE_CHECKING, NoReturn

import msgspec

import memoryd
from memoryd.client import linux
from memoryd.client.errors import MemorydError
from memoryd.client.extras import advise
from memoryd.client.offline import go_offline
from memoryd.client.projects import known as projects
from memoryd.client.transport import paths, trust
from memoryd.daemon import config
from memoryd.daemon.server import watchdog
from memoryd.daemon.system import listen, log_lines, notify, presence, process

if TYPE_CHECKING:
    from memoryd.daemon.core.core import Core
    from memoryd.daemon.server.timer import Timer

_SWITCH_INTERVAL_S = 0.0005  # a busy Python thread gives the event loop its turn ten times sooner than by default
_COLLECTED_AT = 10_000  # new objects; a search makes hundreds, which are hardly ever garbage cycles
FIRST_JOBS_AFTER_S = 15.0
_MODEL_LIMIT_S = 5.0
_PREDECESSOR_LIMIT_S = 10.0
_HELD_LIMIT_S = 60.0  # the same if the socket was passed to this process: clients wait in its queue

logger = logging.getLogger("memoryd.daemon")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the daemon until it has to stop; return the exit code."""
    options = _build_parser().parse_args(arguments)
    log_lines.set_up(options.log_level)
    faulthandler.enable()  # the watchdog's SIGABRT then writes the stack of each thread to the log
    # Set before numpy is loaded, below: OpenBLAS's threads would run a job's products at the priority of searches.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        linux.check()
        settings = config.load(paths.config_path(options.config))
        installed = find_spec("apsw") is not None and find_spec("onnxruntime") is not None
        if installed:
            _check_jobs(settings)
        if options.print_config:
            print(msgspec.json.format(msgspec.json.encode(settings), indent=2).decode())
            return 0
        _make_absolute(options)
        process.leave_working_directory()
        if settings.network.offline:
            go_offline()
        if not installed:
            raise MemorydError(f"The daemon's parts are not installed; {advise('daemon')}")
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        gc.disable()  # imports and loading leave no garbage; `_run` enables it again
        return _serve(options, settings)
    except MemorydError as error:
        logger.error("%s", error.message)
        notify.notify_starter(options.ready_fd, error.message)
        return 1
    except Exception as error:
        logger.critical("the daemon failed", exc_info=True)
        notify.notify_starter(options.ready_fd, f"It failed: {type(error).__name__}: {error}")
        return 1


def _check_jobs(settings: config.Config) -> None:
    """Raise `Invalid` for a setting of an unknown job; import the table of jobs only if there are such settings."""
    if settings.jobs.every_s:
        from memoryd.daemon.jobs import table

        table.check(settings.jobs)


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="memoryd", description="One memory for every agent on this machine.")
    parser.add_argument("--data-dir", metavar="DIR", help="folder of the database (MEMORYD_DATA_DIR)")
    parser.add_argument("--socket", metavar="PATH", help="the socket to listen on (MEMORYD_SOCKET)")
    parser.add_argument("--config", metavar="FILE", help="the configuration file (MEMORYD_CONFIG)")
    parser.add_argument(
        "--log-level", default="info", choices=["debug", "info", "warning", "error"], help="how much is logged (info)"
    )
    parser.add_argument("--log-file", metavar="FILE", type=Path, help="log there, not on stderr: three files of 5 MB")
    parser.add_argument("--print-config", action="store_true", help="print the effective configuration and exit")
    parser.add_argument(
        "--clock", metavar="FILE", type=Path, help="take a file's modification time for now: demonstrations, tests"
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, help="draw the ids of memories from it, in a new database: evaluations"
    )
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--listener-fd", type=int, help=argparse.SUPPRESS)
    parser.add_argument(
        "--version", action="version", version=f"memoryd {memoryd.__version__}", help="print the version and exit"
    )
    return parser


def _make_absolute(options: argparse.Namespace) -> None:
    """Make the paths of the options absolute, before the working directory changes."""
    options.data_dir, options.socket = paths.data_dir(options.data_dir), paths.socket_path(options.socket)
    options.config = paths.config_path(options.config)
    for name in ("clock", "log_file"):
        if path := getattr(options, name):
            setattr(options, name, path.expanduser().absolute())


def _options(options: argparse.Namespace) -> list[str]:
    """Return the options for a successor."""
    names = ("data_dir", "socket", "config", "log_level", "log_file", "clock")
    values = {f"--{name.replace('_', '-')}": getattr(options, name) for name in names}
    return [str(word) for name, value in values.items() if value for word in (name, value)]


def _serve(options: argparse.Namespace, settings: config.Config) -> int:
    """Start the parts, serve, stop the parts; return the exit code, unless this process becomes the next daemon."""
    from memoryd import models
    from memoryd.daemon.conversations.worker import Worker
    from memoryd.daemon.core.core import Core, make_private
    from memoryd.daemon.embedding.api import Models
    from memoryd.daemon.embedding.fetch import fetch
    from memoryd.daemon.server import (
        dispatch,
        handlers,  # noqa: F401
        succession,
    )
    from memoryd.daemon.store.copies import check_not_emptied
    from memoryd.daemon.store.store import FILE_NAME
    from memoryd.daemon.system.clock import FileClock, SystemClock

    dispatch.check()
    os.umask(0o077)
    folder, socket_path = options.data_dir, options.socket
    models_folder = paths.models_dir(settings.model.folder)
    code = 0
    with ExitStack() as stack:
        stack.push(lambda kind, error, trace: _is_due_to_loss(code, error))
        make_private(folder)
        trust.make_private(socket_path.parent)
        for lock in _hold_locks(options, folder, socket_path):
            stack.callback(os.close, lock)
        if options.log_file:
            log_lines.keep_in_file(options.log_file)
        process.clear(process.keep_temporary_files(folder))
        models.sweep(models_folder)
        _put_waiting_in_place(folder)
        choice = Models(settings.embedding_api, models.load)
        clock = FileClock(options.clock) if options.clock else SystemClock()
        check_not_emptied(folder / FILE_NAME)
        core = Core(folder, settings, models_folder, choice.load, fetch, clock)
        _apply_options(core, options)
        stack.callback(core.close)
        _note_former(core)
        stack.callback(choice.close)
        listener = listen.open_listener(socket_path, options.listener_fd)
        stack.callback(listener.socket.close)
        core.start()
        worker = Worker(core)
        stack.callback(worker.close)
        worker.start()
        held = _list_watched_files(core, listener, socket_path)
        code = _run_to_end(_run(core, settings, listener, options.ready_fd, held), held)
        successor_socket = listener.socket.dup() if code == succession.RESTART and not listener.held else None
    logger.info("stopped")
    if successor_socket:
        succession.become_successor(successor_socket, _options(options))
    return code if core.has_ended else _end_at_once(code)


def _end_at_once(code: int) -> NoReturn:
    """End the process while a thread hangs: a normal exit would wait for the thread, or crash a library."""
    logging.shutdown()
    os._exit(code)


def _apply_options(core: "Core", options: argparse.Namespace) -> None:
    """Give the core its options; with a seed, each run that adds the same memories gives them the same ids."""
    core.options = _options(options)
    if options.seed is not None:
        drawn = Random(options.seed)
        core.new_id = lambda: f"{drawn.getrandbits(128):032x}"


def _put_waiting_in_place(folder: Path) -> None:
    from memoryd.daemon.upkeep import swap

    if former := swap.take_up(folder, time()):
        logger.warning("the database was exchanged; the former one is in %s", former)


def _list_watched_files(core: "Core", listener: listen.Listener, socket_path: Path) -> list[presence.WatchedFile]:
    """Return the files whose loss ends the daemon: its locks, its own socket, the database."""
    places = [*_lock_paths(core.folder, socket_path), *([] if listener.held else [listener.path])]
    return [*presence.hold(places), *core.store.files]


def _run_to_end(serving: Coroutine[None, None, int], held: list[presence.WatchedFile]) -> int:
    """Run the event loop; return the exit code: `LOST` also if the loss of a file makes something else fail first."""
    try:
        return asyncio.run(serving)
    except Exception as error:
        if not (missing := presence.find_missing(held)):
            raise
        logger.critical("%s was deleted or moved: this daemon ends (%s)", missing, error)
        return watchdog.LOST


def _is_due_to_loss(code: int, error: BaseException | None) -> bool:
    """Return whether an error while closing is due to the loss of the daemon's files; log it."""
    if code != watchdog.LOST or error is None:
        return False
    logger.warning("not all could be closed: %s: %s", type(error).__name__, error)
    return True


def _note_former(core: "Core") -> None:
    try:
        with core.store.reading() as connection:
            names = core.store.namespaces.list_outermost(connection)
        projects.note_former(str(core.folder), names)
    except OSError as error:
        logger.warning("the names in use cannot be noted beside the database: %s", error)


def _hold_locks(options: argparse.Namespace, folder: Path, socket_path: Path) -> Iterator[int]:
    """Yield the locks that are held for life: one daemon serves a socket, one writes to a data directory."""
    # A client starts a daemon when none answers, and a daemon that is just ending may still hold the locks.
    wait_s = _PREDECESSOR_LIMIT_S if options.ready_fd is not None else 0.0
    if listen.is_passed() or options.listener_fd is not None:
        wait_s = _HELD_LIMIT_S
    of_socket, of_data = _lock_paths(folder, socket_path)
    yield listen.lock(of_socket, f"the socket {socket_path}", wait_s)
    yield listen.lock(of_data, f"the data directory {folder}", wait_s, str(socket_path))


def _lock_paths(folder: Path, socket_path: Path) -> tuple[Path, Path]:
    return socket_path.with_name(socket_path.name + ".lock"), folder / "memoryd.lock"


def _stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set."""
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return stopping


async def _end_when_lost(held: list[presence.WatchedFile], stopping: asyncio.Event) -> None:
    missing = await watchdog.wait_for_loss(held)
    logger.critical("%s was deleted or moved: this daemon ends, the next client starts another one", missing)
    stopping.set()


async def _wait_for_end(stopping: asyncio.Event, timer: "Timer", jobs: config.JobsConfig) -> None:
    """Wait until the daemon has to stop; its jobs begin meanwhile."""
    if jobs.enabled:
        with suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), FIRST_JOBS_AFTER_S)
        if not stopping.is_set():
            timer.start()
    await stopping.wait()
    logger.info("stopping")
    notify.notify_systemd("STOPPING=1")


async def _run(
    core: "Core",
    settings: config.Config,
    listener: listen.Listener,
    ready_fd: int | None,
    held: list[presence.WatchedFile],
) -> int:
    """Serve until a signal or a call says to stop, or a file is lost, then drain; return the exit code."""
    from memoryd.daemon.jobs.runner import Runner
    from memoryd.daemon.server.envelope import FAREWELL
    from memoryd.daemon.server.server import Server
    from memoryd.daemon.server.succession import RESTART
    from memoryd.daemon.server.timer import Timer

    stopping = _stop_on_signals()
    runner = Runner(core)
    runner.start()
    server = Server(core, listener.socket, stopping.set, runner)
    await server.start()
    logger.info("ready: socket %s, data %s, pid %d", listener.path, core.folder, os.getpid())
    notify.notify_systemd("READY=1")
    log_lines.keep_bounded(asyncio.get_running_loop())
    watching = asyncio.create_task(_end_when_lost(held, stopping))
    beating = asyncio.create_task(watchdog.pulse(watchdog.read_interval_s(), core.store.writer.silence_s))
    # The socket answers from now on. The process that started the daemon is notified once the model is loaded too, so
    # that its first search does not use words alone.
    await asyncio.to_thread(core.embedding.wait_settled, _MODEL_LIMIT_S if ready_fd is not None else 0.0)
    gc.freeze()  # permanent objects are then left out of collections, for which all threads wait
    gc.set_threshold(_COLLECTED_AT)
    gc.enable()
    notify.notify_starter(ready_fd, "READY")
    timer = Timer(server)
    await _wait_for_end(stopping, timer, settings.jobs)
    await asyncio.to_thread(timer.stop)
    core.background.stopping.set()  # long calls are interrupted; short ones are still answered
    await server.stop()
    lost = watching.done()
    watching.cancel()
    beating.cancel()
    if server.restarting and not lost:
        return RESTART
    listen.retire(listener, FAREWELL)
    return watchdog.LOST if lost else 0


if __name__ == "__main__":
    sys.exit(main())
