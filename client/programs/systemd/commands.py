"""The commands `service install`, `service uninstall` and `service status`."""

from argparse import ArgumentParser, Namespace

from memoryd.client.programs.memctl.arguments import declare_nothing
from memoryd.client.programs.memctl.commands import Command
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.programs.memctl.local import require_daemon
from memoryd.client.programs.memctl.output import make_printable, paint, print_note, show
from memoryd.client.programs.memctl.text_table import format_fields, size_text
from memoryd.client.programs.systemd import installing
from memoryd.client.programs.systemd.units import current_place, format_units
from memoryd.client.transport import activation, paths


def _declare_install(parser: ArgumentParser) -> None:
    parser.add_argument("--print", action="store_true", help="show the units and change nothing")
    parser.add_argument("--data-dir", metavar="DIR", help="folder of the database (MEMORYD_DATA_DIR)")
    parser.add_argument("--config", metavar="FILE", help="configuration file (MEMORYD_CONFIG)")
    parser.add_argument(
        "--memory-max", metavar="SIZE", default="", help="memory that it may use: 2G, 25%%, infinity (default: 4G)"
    )


def _install(args: Namespace) -> None:
    require_daemon()
    place = current_place(paths.socket_path(args.socket), args.data_dir, args.config, args.memory_max)
    if args.print:
        texts = format_units(place)
        shown = [f"# {activation.unit_folder() / name}\n{text}" for name, text in texts.items()]
        return show(args, texts, lambda: "\n".join(shown).rstrip())
    with client_for(args, autostart=False) as client:
        done = installing.install(place, client)
    return show(args, done, lambda: _installed_text(done))


def _installed_text(done: installing.Installed) -> str:
    what = "Installed" if done.changed else "Already installed"
    last = "until your last logout (`loginctl enable-linger`: always)"
    rows = [
        ("units", done.files[0]),
        ("", done.files[1]),
        ("socket", done.socket),
        ("", "systemd holds it: while the daemon starts clients wait"),
        ("data", done.data_dir),
        (
            "runs",
            "always: from the start of the machine on, also while you are logged out"
            if done.lingering
            else f"from your login {last}",
        ),
        ("look", paint("memctl service status", "cyan") + ", " + paint(activation.LOGS, "cyan")),
        ("change", "systemctl --user edit memoryd.service"),
        ("variables", "of your shell are not seen: API keys go into files (`key_file`)"),
    ]
    return f"{what}; memoryd {done.version} runs, pid {done.pid}.\n{format_fields(rows)}"


def _uninstall(args: Namespace) -> None:
    done = installing.uninstall()
    for path in done.left:
        print_note(f"memctl: {path} was not written by memctl and is left alone.")
    show(args, done, lambda: _removed_text(done))


def _removed_text(done: installing.Removed) -> str:
    if not done.removed:
        return f"No service of memctl is installed; {installing.INSTEAD}."
    listed = "\n".join(f"  {path}" for path in done.removed)
    return f"Removed, the data stays; from now on {installing.INSTEAD}.\n{listed}"


def _show_status(args: Namespace) -> None:
    found = installing.read_state()
    show(args, found, lambda: _status_text(found))


def _status_text(found: installing.ServiceState) -> str:
    limit = f" of at most {size_text(found.memory_limit_bytes)}" if found.memory_limit_bytes else ""
    rows = [
        ("unit", found.file),
        ("socket", f"{found.socket}, {found.socket_state or 'not asked'}" if found.socket else ""),
        ("service", ", ".join(part for part in (found.service_state, f"pid {found.pid}" if found.pid else "") if part)),
        ("starts", _tell_start(found)),
        ("since", found.started),
        ("restarts", str(found.restarts) if found.restarts else ""),
        ("memory", f"{size_text(found.memory_bytes)}{limit}" if found.memory_bytes else ""),
        ("watchdog", found.watchdog),
        ("runs", found.python),
    ]
    notes = "\n".join(paint(make_printable(text), "yellow") for text in found.notes)
    if not found.installed:
        return notes
    head = f"The service is installed{' and enabled' if found.enabled else ', not enabled'}.\n"
    return head + format_fields([row for row in rows if row[1]]) + (f"\n{notes}" if notes else "")


def _tell_start(found: installing.ServiceState) -> str:
    if not found.starts_itself:
        return "with the first client"
    return "with the machine, runs also while you are logged out" if found.lingering else "at your login"


COMMANDS = {
    "service install": Command(
        _declare_install,
        _install,
        "  memctl service install\n  memctl service install --print\n  memctl service install --memory-max 2G",
    ),
    "service uninstall": Command(declare_nothing, _uninstall, "  memctl service uninstall"),
    "service status": Command(declare_nothing, _show_status, "  memctl service status\n  memctl service status --json"),
}
