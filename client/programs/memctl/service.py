"""The commands `up`, `down` and `status` of the daemon itself."""

import os
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from memoryd.client.calls import status as status_call
from memoryd.client.errors import MemorydError, ModelUnavailable, TimedOut, Unavailable
from memoryd.client.programs.memctl.arguments import declare_nothing, parse_timeout
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import ask_running, client_for
from memoryd.client.programs.memctl.output import make_printable, paint, paused_text, show
from memoryd.client.programs.memctl.progress import ProgressBar
from memoryd.client.programs.memctl.spooled import send_spooled
from memoryd.client.programs.memctl.text_table import count_text, duration_text, format_fields, size_text, to_one_line
from memoryd.client.protocol import ClockState, Done, ModelState, Shutdown, Status, ThreadState
from memoryd.client.times import iso
from memoryd.client.transport import paths
from memoryd.client.transport.sync import Client

POLL_S = 0.1
WAIT_S = 600.0
DAMAGE = "a part of the database cannot be read: `memctl doctor` says what to do"


# up ------------------------------------------------------------------------------------------------------------------


def _declare_up(parser: ArgumentParser) -> None:
    parser.add_argument("--data-dir", metavar="DIR", help="folder of the database and the log")
    parser.add_argument("--config", metavar="FILE", help="configuration file")
    wait = f"wait until the model is ready and every memory has its vector, at most S seconds ({WAIT_S:.0f})"
    parser.add_argument("--wait", nargs="?", type=parse_timeout, const=WAIT_S, metavar="S", help=wait)
    parser.add_argument("--restart", action="store_true", help="restart it on its socket; no call fails meanwhile")


def _start(args: Namespace) -> None:
    from memoryd.client.transport import activation, spawn

    options = {}
    if args.data_dir:
        # The log is written there too.
        options["--data-dir"] = os.environ["MEMORYD_DATA_DIR"] = paths.make_absolute(args.data_dir)
    if args.config:
        options["--config"] = paths.make_absolute(args.config)
    socket_path = paths.socket_path(args.socket)
    if args.config and activation.is_enabled(socket_path):
        raise MemorydError(
            "The daemon is a service, whose options are in its unit: `memctl service install --config FILE`, "
            "or `systemctl --user edit memoryd.service`."
        )
    was_running = spawn.locate(socket_path)
    spawn.start(socket_path, [word for option in options.items() for word in option])
    before = 0
    with client_for(args, autostart=False) as client:
        status = client.status()
        if was_running:
            _check_same(status, args)
        if was_running and args.restart:
            before = status.pid
            try:
                status = restart(client, args.timeout)
            except Unavailable:  # the daemon did not come back; starting it raises why, such as invalid settings
                spawn.start(socket_path, status.options)
                status = client.status()
        send_spooled(args)
        if args.wait is not None:
            status = wait_until_ready(client, args.wait)
    state = "runs" if not was_running else "restarted" if args.restart else "already runs"
    same = " as before" if status.pid == before else ""
    show(args, status, lambda: _up_text(status, state, same))


def restart(client: Client, limit_s: float) -> Status:
    """Restart the daemon on its socket, and return the status of the new one."""
    from memoryd.client.transport import activation

    if activation.is_enabled(client.socket_path):
        # systemd refuses to start a unit that was started too often in a short time; this resets its count.
        activation.run_systemctl("reset-failed", activation.SERVICE_UNIT)
    began_at = time.monotonic()
    client.call(Shutdown(restart=True))
    while (status := client.status()).uptime_s > time.monotonic() - began_at:
        if time.monotonic() - began_at > limit_s:
            raise TimedOut(f"The daemon (pid {status.pid}) has not restarted within {limit_s:g} s.")
        time.sleep(POLL_S)
    return status


def _check_same(status: Status, args: Namespace) -> None:
    if args.data_dir and Path(status.data_dir).resolve() != Path(args.data_dir).expanduser().resolve():
        raise MemorydError(
            f"A daemon with its data in {status.data_dir} already answers there; "
            "stop it with `memctl down` or choose another --socket."
        )


def _up_text(status: Status, state: str, same: str) -> str:
    rows = [("socket", status.socket), ("data", status.data_dir), ("model", model_text(status.model))]
    return f"memoryd {status.version} {state}, pid {status.pid}{same}.\n{format_fields(rows)}"


def wait_until_ready(client: Client, limit_s: float) -> Status:
    """Wait until the model is ready and no embedding is pending; raise `ModelUnavailable` or `TimedOut`."""
    give_up_at = time.monotonic() + limit_s
    most = 0
    with ProgressBar("waiting for the model") as progress:
        while True:
            status = client.status()
            if status.model.state in ("failed", "missing"):
                raise ModelUnavailable(f"The model is {model_text(status.model)}.")
            most = max(most, status.pending_embeddings)
            if status.model.state == "ready" and not status.pending_embeddings and not status.model.reembedding:
                return status
            if time.monotonic() > give_up_at:
                raise TimedOut(f"Not ready after {limit_s:g} s: the model is {model_text(status.model)}.")
            label = "vectors" if status.model.state == "ready" else f"model: {status.model.state}"
            progress.update(most - status.pending_embeddings, most, label)
            time.sleep(POLL_S)


def model_text(model: ModelState) -> str:
    """Return a model's name and state in words."""
    text = f"{model.name}, {model.state}"
    if model.dimensions:
        text += f", {model.dimensions} dimensions"
    if model.format:
        text += f", {model.format}"
    if model.error:
        text += f" ({make_printable(model.error).rstrip('.')})"
    if model.reembedding:
        text += f"; vectors computed again: {model.reembedding.done} of {model.reembedding.total}"
    return text


# down ----------------------------------------------------------------------------------------------------------------


def _stop(args: Namespace) -> None:
    from memoryd.client.programs.memctl.upkeep.restart import is_alive
    from memoryd.client.transport import activation, spawn

    with client_for(args, autostart=False) as client:
        if activation.is_enabled(client.socket_path) and not activation.find_obstacle():
            return _stop_service(args)
        if not (located := spawn.locate(client.socket_path)):
            return show(args, Done(message="No daemon runs."), lambda: f"No daemon runs at {client.socket_path}.")
        pid = client.status().pid
        client.call(Shutdown())
        give_up_at = time.monotonic() + args.timeout
        while spawn.is_answering(Path(located)) or is_alive(pid):
            if time.monotonic() > give_up_at:
                raise TimedOut(f"The daemon (pid {pid}) still runs after {args.timeout:g} s.")
            time.sleep(0.02)
    return show(args, Done(message="Stopped."), lambda: f"memoryd has stopped (pid {pid}).")


def _stop_service(args: Namespace) -> None:
    """Stop both units of the service; if the socket stayed, the next client would start the daemon again."""
    from memoryd.client.transport import activation

    process = activation.run_systemctl(
        "stop", activation.SOCKET_UNIT, activation.SERVICE_UNIT, limit_s=args.timeout + 60
    )
    if process.returncode:
        raise MemorydError(f"The service could not be stopped: {process.stderr.strip()}")
    message = "The service memoryd has stopped; the next client or `memctl up` starts it again."
    show(args, Done(message="Stopped."), lambda: message)


# status --------------------------------------------------------------------------------------------------------------


def _show_status(args: Namespace) -> None:
    status = ask_running(args, status_call())
    show(args, status, lambda: _status_text(status))


def _status_text(status: Status) -> str:
    pending = f", {status.pending_embeddings:,} without a vector yet" if status.pending_embeddings else ""
    others = {name: number - (name == "control") for name, number in status.queued.items()}  # without this call
    queued = ", ".join(f"{name} {number}" for name, number in others.items() if number)
    turns = f"; {count_text(status.turns, 'turn')} in L0" if status.turns else ""
    files = f", {size_text(status.data_bytes)} in all" if status.data_bytes else ""
    memory = f"{size_text(status.rss_bytes)}, with the vector index {size_text(status.index_bytes)}"
    used, limit = status.database_used_bytes, status.database_limit_bytes
    near = f", {size_text(used)} of the limit of {size_text(limit)} in use" if limit and used > limit // 2 else ""
    clock = clock_text(status.clock)
    rows = [
        ("socket", status.socket),
        ("data", f"{status.data_dir}{files}"),
        ("memories", f"{status.memories:,}{pending}{turns}"),
        ("model", model_text(status.model)),
        ("languages", paint(f"{unread_text(status)}: {better_model(status)}", "yellow") if status.unread else ""),
        ("memory use", memory if status.rss_bytes else ""),  # 0 for a caller with a token
        ("database", f"{size_text(status.database_bytes)}{near}" if status.database_bytes else ""),
        ("disk", paint("full: nothing is added until there is room", "yellow") if status.disk_full else ""),
        ("connections", f"{status.connections}" if status.connections else ""),
        ("queued", queued),
        ("degraded", paint(", ".join(status.degraded), "yellow")),
        ("damage", paint(DAMAGE, "red") if "database" in status.degraded else ""),
        ("observing", paint(paused_text(status.pauses), "yellow")),
        ("clock", paint(clock, "yellow") if clock else ""),
        ("threads", paint(threads_text(status.threads), "yellow")),
    ]
    head = f"memoryd {status.version} runs, pid {status.pid}, up {duration_text(status.uptime_s)}, "
    return f"{head}protocol {status.protocol}.\n{format_fields([row for row in rows if row[1]])}"


def unread_text(status: Status) -> str:
    """Return the share of texts in languages that the model does not support; empty if it is small."""
    if not status.unread:
        return ""
    first, *others = status.unread.languages
    names = f"{first} and {others[0]}" if len(others) == 1 else ", ".join([first, *others[:2]])
    more = " …" if len(others) > 2 else ""
    return f"{status.unread.share:.0%} of the texts are in {names}{more}, which {status.model.name} does not support"


def better_model(status: Status) -> str:
    """Return the commands for a model that supports the languages of the texts."""
    name = status.unread.model if status.unread else ""
    return f"memctl model pull {name} && memctl model use {name}"


def clock_text(clock: ClockState | None) -> str:
    """Return by how much the system's clock jumped; empty if it did not, or if that is unknown."""
    if clock is None or clock.state == "steady":
        return ""
    way = "ahead" if clock.off_s > 0 else "back"
    rest = duration_text(clock.counts_in_s or 0.0)
    jumped = f"jumped {duration_text(abs(clock.off_s))} {way}, or the machine was off"
    return f"{jumped}; nothing expires by the new time for {rest}"


def threads_text(threads: list[ThreadState]) -> str:
    """Return which threads failed, why and whether they work again; empty if none failed."""
    return "; ".join(
        f"{thread.name} failed {count_text(thread.restarts, 'time')}"
        f"{f', works since {iso(thread.works_since)}' if thread.works_since else ''} ({to_one_line(thread.error)})"
        for thread in threads
        if thread.restarts
    )


COMMANDS = {
    "up": Command(
        _declare_up,
        _start,
        "  memctl up\n  memctl up --wait\n  memctl up --restart\n  memctl up --data-dir /tmp/try --socket /tmp/try/s",
    ),
    "down": Command(declare_nothing, _stop, "  memctl down"),
    "status": Command(declare_nothing, _show_status, "  memctl status\n  memctl status --json"),
}
