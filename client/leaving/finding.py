"""What there is of memoryd on this machine, in the order in which it is removed, and how each part is removed.

Hooks come first, so that no agent starts a daemon anew; then what starts a daemon or is one, then files. A folder may
hold files of the user too: only what memoryd writes there is deleted, which is known by its names.
"""

import re
import shutil
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from memoryd.client.agents.hooks import folders, installing
from memoryd.client.agents.hooks.hosts import HOSTS
from memoryd.client.agents.hooks.installing import FileChange, Refusal, Target
from memoryd.client.doctor.patient import DATABASE, examine_file
from memoryd.client.errors import MemorydError, TimedOut, Unavailable
from memoryd.client.memctl.link import client_for
from memoryd.client.memctl.local import effective_settings, is_installed
from memoryd.client.memctl.model import folder_options, run_models
from memoryd.client.memctl.table import count_kept, count_text
from memoryd.client.memctl.upkeep import restart
from memoryd.client.protocol import GetStats, SharedRoot, Status
from memoryd.client.systemd import installing as service
from memoryd.client.transport import activation, paths

# What memoryd writes into a data directory, and beside models.
_DATA = (
    *("memoryd.*", "memoryd-*", "hooks.*", "projects.*", "owner.token*", "mcp.token*", "backfill.running"),
    *("backups", "before-*", "next", "next.part", "tmp", "encodings"),
)
_MODELS = (".api", ".lock", ".partial", ".new-*", ".old-*")
_MANIFEST = "manifest.json"  # of a model
_POLL_S = 0.02
# A call of memctl in an agent's file, and files below the home folder in which a user may have put one.
_CALL = re.compile(rb'["/]memctl["\s]')
_OWN_LINES = (
    *(".bashrc", ".bash_profile", ".profile", ".zshrc", ".config/fish/config.fish", ".hermes/config.yaml"),
    *(".local/share/bash-completion/completions/memctl", ".zfunc/_memctl", ".config/fish/completions/memctl.fish"),
)


class Part(NamedTuple):
    """Something of memoryd: what it is, where, what removes it, a word about it, its size."""

    what: str
    path: Path
    remove: Callable[[], object]
    note: str = ""
    size_bytes: int = 0


class Remains(NamedTuple):
    """Something that stays, and why."""

    name: str
    reason: str


class OwnFiles(NamedTuple):
    """What memoryd writes into a folder, by its names; `around`: the folders that go as well once they are empty."""

    folder: Path
    patterns: tuple[str, ...]
    around: tuple[Path, ...]

    def list_there(self) -> set[Path]:
        """Return the files and folders that are there."""
        return {path for pattern in self.patterns for path in self.folder.glob(pattern)}

    def list_foreign(self) -> list[Path]:
        """Return what else is in the folder."""
        return sorted(set(self.folder.iterdir()) - self.list_there())

    def measure(self) -> int:
        """Return the bytes of all of it."""
        return sum(map(_measure, self.list_there()))

    def delete(self) -> None:
        """Delete what is there by now, then the folders around it that are empty."""
        for path in self.list_there():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        for folder in self.around:
            with suppress(OSError):  # something else is in it
                folder.rmdir()


class Installation(NamedTuple):
    """All that there is: the parts in the order in which they go, what stays, how many memories are among it.

    `memories` is None where the database cannot be read.
    """

    parts: list[Part]
    remains: list[Remains]
    memories: int | None


def find(args: Namespace, keep_data: bool) -> Installation:
    """Look for all that there is; with `keep_data` for all but memories and settings.

    Raise `MemorydError` where a file of an agent mentions memctl and cannot be read.
    """
    status, settings = restart.get_status(args), _read_settings()
    data = _find_data(status)
    memories = status.memories if status else _count_memories(data)
    units, foreign_units = service.find_units()
    parts = [*_find_hooks(), *(Part("service", path, service.uninstall) for path in units.values())]
    if status:
        parts.append(Part("daemon", Path(status.socket), partial(_stop, args, status), f"pid {status.pid}"))
    parts += _find_sockets(args, settings)
    remains = [Remains(str(path), "memctl did not write this unit") for path in foreign_units.values()]
    changes = activation.unit_folder() / f"{activation.SERVICE_UNIT}.d"
    if changes.is_dir():
        remains.append(Remains(str(changes), "your changes of the service"))
    remains += _find_lines()
    models = _find_models(settings)
    files = [("models", models, ", ".join(sorted(name for name in models.patterns if name not in _MODELS)))]
    if not keep_data:
        note = "" if memories is None else count_kept(memories, status.turns if status else 0)
        files = [*(("data", own, note) for own in data), *files, ("settings", _find_settings(), "")]
        remains += [Remains(root.root, _describe_root(root)) for root in _list_roots(args, status)]
    files = [(what, own, note) for what, own, note in files if own.list_there()]
    parts += [Part(what, own.folder, own.delete, note, own.measure()) for what, own, note in files]
    kept = {path for _, own, _ in files for path in own.list_there()}
    foreign = {path for _, own, _ in files if own.folder in own.around for path in own.list_foreign()}
    remains += [Remains(str(path), "memoryd did not write it") for path in sorted(foreign - kept)]
    return Installation(parts, remains, memories)


def _read_settings() -> dict[str, Any] | None:
    """Return the settings; None where no daemon is installed, or none would start with this file."""
    with suppress(MemorydError):
        return effective_settings() if is_installed() else None
    return None


def _count_memories(data: Iterable[OwnFiles]) -> int | None:
    files = [own.folder / DATABASE for own in data if (own.folder / DATABASE).is_file()]
    with suppress(MemorydError):  # damaged, or no daemon is installed
        return sum(int(examine_file(file, check=False)["memories"]) for file in files)
    return None


def _list_roots(args: Namespace, status: Status | None) -> list[SharedRoot]:
    if not status:
        return []
    with client_for(args, autostart=False) as client:
        daemon = client.call(GetStats(reach="all")).daemon
    return daemon.shared if daemon else []


def _describe_root(root: SharedRoot) -> str:
    unsent = f"; {count_text(root.waiting, 'change')} of this machine never got there" if root.waiting else ""
    return f"shared: what is on {root.server} stays there{unsent}"


# Hooks ---------------------------------------------------------------------------------------------------------------


def _find_hooks() -> Iterator[Part]:
    command = installing.own_command()
    for target in _list_targets():
        copy = installing.copy_of(target.path)
        try:
            change = installing.plan_uninstall(target, command)
        except Refusal as refusal:
            if b"memctl" in (installing.read_file(target.path) or b""):
                raise MemorydError(f"{refusal} It mentions memctl: correct it, or take that out by hand.") from None
            continue
        if change.is_one:
            restore = partial(installing.apply, change._replace(copy=None))  # no copy of the file is left beside it
            yield Part("hooks", target.path, restore, _describe_change(change))
        elif copy.is_file():
            yield Part("hooks", copy, copy.unlink, "a copy that hooks made", _measure(copy))


def _find_lines() -> Iterator[Remains]:
    """Yield files with a line of the user's own that calls memctl, or names memoryd."""
    command = installing.own_command()
    for target in _list_targets():
        with suppress(Refusal, MemorydError):
            if _CALL.search(installing.plan_uninstall(target, command).after or b""):
                yield Remains(str(target.path), "it calls memctl in an entry of yours: take that out by hand")
    for path in (Path.home() / name for name in _OWN_LINES):
        with suppress(MemorydError):
            if re.search(rb"memctl|memoryd", installing.read_file(path) or b""):
                yield Remains(str(path), "it names memoryd in a line of yours: take that out by hand")


def _describe_change(change: FileChange) -> str:
    if change.after is None:
        return "deleted: all of it is memoryd's"
    return "as it was before, to the byte" if change.copy is None else "without memoryd's part"


def _list_targets() -> list[Target]:
    """Return the files of all agents that may have hooks: the user's, and those of projects."""
    targets = [
        target
        for place in (None, *folders.list_folders())
        for agent in HOSTS
        for target in installing.list_targets(agent, place)
    ]
    return list({target.path.resolve(): target for target in targets}.values())


# Process and sockets -------------------------------------------------------------------------------------------------


def _stop(args: Namespace, status: Status) -> None:
    """Stop a daemon, unless the end of its service has done so; raise `TimedOut`."""
    with suppress(Unavailable):
        restart.ask_to_stop(args)
    give_up_at = time.monotonic() + args.timeout
    while restart.is_alive(status.pid):
        if time.monotonic() > give_up_at:
            raise TimedOut(f"The daemon (pid {status.pid}) still runs after {args.timeout:g} s; its data stays.")
        time.sleep(_POLL_S)


def _find_sockets(args: Namespace, settings: dict[str, Any] | None) -> Iterator[Part]:
    bound = settings["access"]["sockets"] if settings else {}
    for path in dict.fromkeys([paths.socket_path(args.socket), *map(Path, bound)]):
        own = OwnFiles(path.parent, (path.name, f"{path.name}.lock", f"{path.name}.start"), _list_own(path.parent))
        if own.list_there():
            yield Part("socket", path, own.delete)


# Files ---------------------------------------------------------------------------------------------------------------


def _find_data(status: Status | None) -> list[OwnFiles]:
    """Return the folder that this environment names, and the daemon's where that is another one."""
    named = [paths.data_dir(), *([Path(status.data_dir)] if status else [])]
    folders = {folder.resolve(): folder for folder in named if folder.is_dir()}
    return [OwnFiles(folder, _DATA, (folder,)) for folder in folders.values()]


def _find_models(settings: dict[str, Any] | None) -> OwnFiles:
    """Return the models, none of them where no daemon is installed."""
    if not is_installed():
        return OwnFiles(paths.data_dir(), (), ())
    folder = Path(run_models("path", "--json", *(folder_options() if settings else []))["path"])
    names = [path.parent.name for path in folder.glob(f"[!.]*/{_MANIFEST}")]
    return OwnFiles(folder, (*_MODELS, *names), (folder, *_list_own(folder.parent)))


def _find_settings() -> OwnFiles:
    file = paths.config_path()
    return OwnFiles(file.parent, (file.name,), _list_own(file.parent))


def _list_own(folder: Path) -> tuple[Path, ...]:
    """Return a folder that memoryd has made for itself, such as `~/.cache/memoryd`, else nothing."""
    return (folder,) if folder.name.startswith("memoryd") else ()


def _measure(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    if path.is_dir() and not path.is_symlink():
        return sum(map(_measure, path.iterdir()))
    return path.lstat().st_size
