"""Find all parts of memoryd on this machine, in the order in which they are removed, and how to remove each.

Hooks come first, so that no agent starts a daemon again; then the service and the daemon, then files. Folders may also
contain files of the user: only files with the names that memoryd uses are deleted.

It does not search for other processes, nor for lines that a person added to files of a shell, an agent or git.
"""

import os
import re
import shutil
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from memoryd.client.errors import Invalid, MemorydError, TimedOut, Unavailable
from memoryd.client.programs.doctor.patient import DATABASE, examine_file
from memoryd.client.programs.hooks import folders, installing, spool
from memoryd.client.programs.hooks.hosts import HOSTS
from memoryd.client.programs.hooks.installing import FileChange, Refusal, Target
from memoryd.client.programs.memctl.link import client_for
from memoryd.client.programs.memctl.local import effective_settings, is_installed
from memoryd.client.programs.memctl.model import folder_options, run_models
from memoryd.client.programs.memctl.text_table import count_kept, count_stored, count_text
from memoryd.client.programs.memctl.upkeep import restart
from memoryd.client.programs.systemd import installing as service
from memoryd.client.protocol import GetStats, Stats, Status
from memoryd.client.transport import paths

# The names that memoryd uses in a data directory, and next to models.
_DATA = (
    *("memoryd.*", "memoryd-*", "hooks.*", "projects.*", "owner.token*", "mcp.token*", "backfill.running"),
    *("backups", "before-*", "next", "next.part", "tmp", "encodings"),
)
_MODELS = (".api", ".lock", ".partial", ".new-*", ".old-*")
_MANIFEST = "manifest.json"  # of a model
_POLL_S = 0.02
_CALL = re.compile(rb'["/]memctl["\s]')  # a call of memctl in an agent's file
_FORMER = "how that file was before memoryd; delete it if you do not need it"
_GONE = "it had hooks and is gone; if you moved it, run `memctl uninstall` in it as well"


class Part(NamedTuple):
    """A part of memoryd: its kind, its path, the function that removes it, a remark, and its size."""

    what: str
    path: Path
    remove: Callable[[], object]
    note: str = ""
    size_bytes: int = 0


class Remains(NamedTuple):
    """Something that is kept, and why; `unfinished` if it is memoryd's and should have been removed."""

    name: str
    reason: str
    unfinished: bool = False


class OwnFiles(NamedTuple):
    """Memoryd's files in a folder: those whose names match `patterns`.

    After they are deleted, the folders `around` are removed if they are empty.
    """

    folder: Path
    patterns: tuple[str, ...]
    around: tuple[Path, ...]

    def list_there(self) -> set[Path]:
        """Return the existing files and folders."""
        return {path for pattern in self.patterns for path in self.folder.glob(pattern)}

    def list_foreign(self) -> list[Path]:
        """Return the other files in the folder."""
        return sorted(set(self.folder.iterdir()) - self.list_there())

    @property
    def is_named(self) -> bool:
        """Whether the folder or an enclosing one is memoryd's by its name, so that foreign files are reported."""
        return any(_list_own(folder) for folder in self.around)

    def measure(self) -> int:
        """Return the total size in bytes."""
        return sum(map(_measure, self.list_there()))

    def delete(self) -> None:
        """Delete the existing files, then the empty folders around them."""
        for path in self.list_there():
            if path.is_dir() and not path.is_symlink():
                with suppress(FileNotFoundError):  # another uninstall is deleting it
                    shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        for folder in self.around:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


class Installation(NamedTuple):
    """Everything found: the parts in the order of removal, what is kept, and the content of the database.

    `kept` is like `2 memories, 1 turn`, empty if the database cannot be read. `made` are folders that installing hooks
    created, which are removed if they are empty.
    """

    parts: list[Part]
    remains: list[Remains]
    kept: str
    made: list[Path]

    @property
    def is_unfinished(self) -> bool:
        """Whether some part could not be removed."""
        return any(remain.unfinished for remain in self.remains)


def find(args: Namespace, keep_data: bool) -> Installation:
    """Find all parts; with `keep_data` all except memories and settings."""
    status = restart.get_status(args)
    _refuse_another(args, status)
    settings, data = _read_settings(), _find_data(status)
    stats = _ask(args) if status else None
    kept = count_stored(stats.memories, stats.turns, stats.by_tier) if stats else _count_kept(data)
    units, foreign_units = service.find_units()
    hooks, remains = _find_hooks()
    parts = [*hooks, *(Part("service", path, service.uninstall) for path in units.values())]
    parts += [*_find_daemon(args, status), *_find_sockets(args, settings, status)]
    remains += [Remains(str(folder), _GONE) for folder in folders.list_gone()]
    remains += [Remains(str(path), "memctl did not write this unit") for path in foreign_units.values()]
    models = _find_models(settings)
    files = [("models", models, ", ".join(sorted(name for name in models.patterns if name not in _MODELS)))]
    own_data = [*(("data", own, _describe_data(own, kept)) for own in data), ("settings", _find_settings(), "")]
    if keep_data:
        there = [(own.folder, what, note) for what, own, note in own_data if own.list_there()]
        remains[:0] = [Remains(str(path), ", ".join(filter(None, [f"the {what}", note]))) for path, what, note in there]
    else:
        files = [*own_data[:-1], *files, own_data[-1]]
    return _add_files(Installation(parts, remains, kept, folders.list_made()), files)


def _refuse_another(args: Namespace, status: Status | None) -> None:
    """Raise `Invalid` if the environment names another data directory while the default one exists too."""
    if not (args.socket or paths.list_overrides()):
        return
    folder = Path(status.data_dir) if status and not os.environ.get("MEMORYD_DATA_DIR") else paths.data_dir()
    default = paths.default_data_dir()
    if not _own_data(default).list_there() or folder.resolve() == default.resolve():
        return
    unset = [word for name in paths.list_overrides() for word in ("-u", name)]
    command = " ".join([*(["env", *unset] if unset else []), "memctl uninstall"])
    raise Invalid(
        f"{folder} is another memory than the default one in {default}. To remove it alone, run `memctl down` and"
        f" delete that folder; to remove memoryd, run `{command}`."
    )


def _add_files(there: Installation, files: Sequence[tuple[str, OwnFiles, str]]) -> Installation:
    """Add memoryd's files (kind, files, remark), and report foreign files in their folders."""
    ours = {path for _, own, _ in files for path in own.list_there()}
    mine = [own for _, own, _ in files if own.folder in own.around and (own.is_named or own.list_there())]
    foreign = {path for own in mine if own.folder.is_dir() for path in own.list_foreign()}
    remains = [Remains(str(path), "memoryd did not write it") for path in sorted(foreign - ours)]
    parts = [Part(what, own.folder, own.delete, note, own.measure()) for what, own, note in files if own.list_there()]
    return there._replace(parts=[*there.parts, *parts], remains=[*there.remains, *remains])


def _read_settings() -> dict[str, Any] | None:
    """Return the settings; None if no daemon is installed, or the file is invalid."""
    with suppress(MemorydError):
        return effective_settings() if is_installed() else None
    return None


def _ask(args: Namespace) -> Stats | None:
    """Return the statistics of the daemon, None if it has ended meanwhile."""
    with suppress(Unavailable), client_for(args, autostart=False) as client:
        return client.call(GetStats(reach="all"))
    return None


def _count_kept(data: Iterable[OwnFiles]) -> str:
    files = [own.folder / DATABASE for own in data if (own.folder / DATABASE).is_file()]
    with suppress(MemorydError):  # the database is damaged, or no daemon is installed
        facts = [examine_file(file, check=False) for file in files]
        memories, turns, parts = (sum(one[name] for one in facts) for name in ("memories", "turns", "parts"))
        return count_kept(memories - parts, turns, parts)
    return ""


def _describe_data(own: OwnFiles, kept: str) -> str:
    copies = len(list((own.folder / "backups").glob("*.sqlite")))
    copied = f"{count_text(copies, 'copy')} in backups/" if copies else ""
    waiting = spool.count_waiting() if own.folder.resolve() == paths.data_dir().resolve() else 0
    unsent = f"{count_text(waiting, 'call')} of hooks not sent" if waiting else ""
    return ", ".join(filter(None, [kept, copied, unsent]))


# Hooks ---------------------------------------------------------------------------------------------------------------


def _find_hooks() -> tuple[list[Part], list[Remains]]:
    """Return the agents' files with hooks, and those that mention memctl but cannot be changed."""
    command = installing.own_command()
    parts, remains = [], []
    for target in _list_targets():
        copy = installing.copy_of(target.path)
        try:
            change = installing.plan_uninstall(target, command)
        except Refusal as refusal:
            if b"memctl" in (installing.read_file(target.path) or b""):
                reason = f"it mentions memctl and cannot be changed: {refusal.reason}; take that out by hand"
                reason += f"; {copy.name} beside it is how it was before memoryd" if copy.is_file() else ""
                remains.append(Remains(str(target.path), reason, unfinished=True))
            elif copy.is_file():
                remains.append(Remains(str(copy), _FORMER))
            continue
        if change.has_effect:
            parts.append(Part("hooks", target.path, partial(_restore, change), _describe_change(change)))
        elif copy.is_file() and _CALL.search(change.before or b""):
            remains.append(Remains(str(copy), _FORMER))
        elif copy.is_file():
            remove = partial(copy.unlink, missing_ok=True)
            parts.append(Part("hooks", copy, remove, "a copy that hooks made", _measure(copy)))
    return parts, remains


def _restore(change: FileChange) -> None:
    """Remove the hooks from a file, and its copy."""
    if installing.read_file(change.target.path) != change.after:  # unless another uninstall has just done it
        installing.apply(change._replace(copy=None))


def _describe_change(change: FileChange) -> str:
    if change.after is None:
        return "deleted: all of it is memoryd's"
    return "as it was before, to the byte" if change.copy is None else "without memoryd's part"


def _list_targets() -> list[Target]:
    """Return the files of all agents that may have hooks, of the user and of projects."""
    targets = [
        target
        for place in (None, *folders.list_folders())
        for agent in HOSTS
        for target in installing.list_targets(agent, place)
    ]
    return list({target.path.resolve(): target for target in targets}.values())


# Process and sockets -------------------------------------------------------------------------------------------------


def _find_daemon(args: Namespace, status: Status | None) -> Iterator[Part]:
    if status:
        yield Part("daemon", Path(status.socket), partial(_stop, args, status), f"pid {status.pid}")


def _stop(args: Namespace, status: Status) -> None:
    """Stop the daemon, unless it has ended with its service; raise `TimedOut`."""
    with suppress(Unavailable):
        restart.ask_to_stop(args)
    give_up_at = time.monotonic() + args.timeout
    while restart.is_alive(status.pid):
        if time.monotonic() > give_up_at:
            raise TimedOut(f"The daemon (pid {status.pid}) still runs after {args.timeout:g} s; its data stays.")
        time.sleep(_POLL_S)


def _find_sockets(args: Namespace, settings: dict[str, Any] | None, status: Status | None) -> Iterator[Part]:
    bound = settings["access"]["sockets"] if settings else {}
    listening = [status.socket] if status else []
    for path in dict.fromkeys([paths.socket_path(args.socket), *map(Path, [*listening, *bound])]):
        own = OwnFiles(path.parent, (path.name, f"{path.name}.lock", f"{path.name}.start"), _list_own(path.parent))
        if own.list_there():
            yield Part("socket", path, own.delete)


# Files ---------------------------------------------------------------------------------------------------------------


def _find_data(status: Status | None) -> list[OwnFiles]:
    """Return the data folder of this environment, and also the daemon's if it uses another one."""
    named = [paths.data_dir(), *([Path(status.data_dir)] if status else [])]
    folders = {folder.resolve(): folder for folder in named if folder.is_dir()}
    return list(map(_own_data, folders.values()))


def _own_data(folder: Path) -> OwnFiles:
    return OwnFiles(folder, _DATA, (folder,))


def _find_models(settings: dict[str, Any] | None) -> OwnFiles:
    """Return the files of models, also if the daemon is not installed any more."""
    if is_installed():
        folder = Path(run_models("path", "--json", *(folder_options() if settings else []))["path"])
    else:
        folder = paths.models_dir()
    names = [path.parent.name for path in folder.glob(f"[!.]*/{_MANIFEST}")]
    return OwnFiles(folder, (*_MODELS, *names), (folder, *_list_own(folder.parent)))


def _find_settings() -> OwnFiles:
    file = paths.config_path()
    return OwnFiles(file.parent, (file.name,), _list_own(file.parent))


def _list_own(folder: Path) -> tuple[Path, ...]:
    """Return the folder if memoryd made it for itself, such as `~/.cache/memoryd`; else an empty tuple."""
    return (folder,) if folder.name.startswith("memoryd") else ()


def _measure(path: Path) -> int:
    """Return the size in bytes of a file, or of all files in a folder; 0 if it no longer exists."""
    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            return sum(map(_measure, path.iterdir()))
        return path.lstat().st_size
    return 0
