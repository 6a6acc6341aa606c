"""What there is of memoryd on this machine, in the order in which it is removed, and how each part is removed.

Hooks come first, so that no agent starts a daemon anew; then what starts a daemon or is one, then files. A folder may
hold files of the user too: only what memoryd writes there is deleted, which is known by its names.

Where variables lead to another memory than the default one, and that is there, this memory alone goes: hooks, service,
settings and models stay with the default one.
"""

import os
import re
import shlex
import shutil
import time
import tomllib
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from memoryd.client.agents.hooks import folders, installing, spool
from memoryd.client.agents.hooks.hosts import HOSTS
from memoryd.client.agents.hooks.installing import FileChange, Refusal, Target
from memoryd.client.doctor.patient import DATABASE, PROC, examine_file
from memoryd.client.errors import MemorydError, TimedOut, Unavailable
from memoryd.client.memctl.link import client_for
from memoryd.client.memctl.local import effective_settings, is_installed
from memoryd.client.memctl.model import folder_options, run_models
from memoryd.client.memctl.table import count_kept, count_stored, count_text
from memoryd.client.memctl.upkeep import restart
from memoryd.client.protocol import GetStats, Stats, Status
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
_NAMED = re.compile(rb"memctl|memoryd|MEMORYD_")
_OWN_LINES = (
    *(".bashrc", ".bash_profile", ".profile", ".zshenv", ".zprofile", ".zshrc"),
    *(".config/fish/config.fish", ".config/environment.d/*.conf", ".hermes/config.yaml"),
)
# Files that are about memoryd alone: completion as memctl prints it, the plugin of docs/agents.md.
_OWN_FILES = (
    *(".local/share/bash-completion/completions/memctl", ".zfunc/_memctl", ".config/fish/completions/memctl.fish"),
    ".hermes/plugins/memoryd/__init__.py",
)
_PROGRAMS = (b"/memctl", b"memoryd.client.memctl", b"memoryd.daemon")  # a word of a process that is memoryd's
_FORMER = "how that file was before memoryd; delete it when you need it no more"
_GONE = "it had hooks and is gone; if you moved it, run `memctl uninstall` in it as well"
_PLACED_BY = ("HOME", "MEMORYD_DATA_DIR", "MEMORYD_SOCKET")  # variables by which a process has this memory


class Part(NamedTuple):
    """Something of memoryd: what it is, where, what removes it, a word about it, its size."""

    what: str
    path: Path
    remove: Callable[[], object]
    note: str = ""
    size_bytes: int = 0


class Remains(NamedTuple):
    """Something that stays, and why; `unfinished` where it is memoryd's, so that memoryd is not gone yet."""

    name: str
    reason: str
    unfinished: bool = False


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

    @property
    def is_named(self) -> bool:
        """Whether the folder or one around it is memoryd's by its name, so that what else is in it is worth a word."""
        return any(_list_own(folder) for folder in self.around)

    def measure(self) -> int:
        """Return the bytes of all of it."""
        return sum(map(_measure, self.list_there()))

    def delete(self) -> None:
        """Delete what is there by now, then the folders around it that are empty."""
        for path in self.list_there():
            if path.is_dir() and not path.is_symlink():
                with suppress(FileNotFoundError):  # another uninstall is deleting it
                    shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        for folder in self.around:
            with suppress(OSError):  # something else is in it
                folder.rmdir()


class Installation(NamedTuple):
    """All that there is: the parts in the order in which they go, what stays, what is kept in the database.

    `kept` is `2 memories, 1 turn`, empty where the database cannot be read. `made` are folders that hooks made, which
    go where they are empty then. `alone` is the folder of a memory that goes alone: memoryd and the default one stay.
    """

    parts: list[Part]
    remains: list[Remains]
    kept: str
    made: list[Path]
    alone: Path | None = None

    @property
    def is_unfinished(self) -> bool:
        """Whether something of memoryd's stays that should go."""
        return any(remain.unfinished for remain in self.remains)

    def mark_last(self) -> "Installation":
        """Return the same for the run that forgets which projects had hooks: it says so of those that are gone."""
        last = f"{_GONE} (this is said only now)"
        remains = [one._replace(reason=last) if one.reason == _GONE else one for one in self.remains]
        return self._replace(remains=remains)


def find(args: Namespace, keep_data: bool) -> Installation:
    """Look for all that there is, or for one memory that goes alone; with `keep_data` not for memories and settings."""
    status = restart.get_status(args)
    alone = _choose_alone(args, status)
    return _find_alone(args, keep_data, status, alone) if alone else _find_all(args, keep_data, status)


def _find_all(args: Namespace, keep_data: bool, status: Status | None) -> Installation:
    settings, data = _read_settings(), _find_data(status)
    stats = _ask(args) if status else None
    kept = count_stored(stats.memories, stats.turns, stats.by_tier) if stats else _count_kept(data)
    units, foreign_units = service.find_units()
    hooks, remains = _find_hooks()
    parts = [*hooks, *(Part("service", path, service.uninstall) for path in units.values())]
    parts += [*_find_daemon(args, status), *_find_sockets(args, settings, status)]
    remains += [*_find_missing(), *_find_processes(status.pid if status else 0), *_find_gone()]
    remains += [Remains(str(path), "memctl did not write this unit") for path in foreign_units.values()]
    changes = activation.unit_folder() / f"{activation.SERVICE_UNIT}.d"
    if changes.is_dir():
        remains.append(Remains(str(changes), "your changes of the service"))
    remains += [*_find_lines(), *_find_excludes([part.path for part in hooks])]
    models = _find_models(settings)
    files = [("models", models, ", ".join(sorted(name for name in models.patterns if name not in _MODELS)))]
    own_data = [*(("data", own, _describe_data(own, kept)) for own in data), ("settings", _find_settings(), "")]
    if keep_data:
        there = [(own.folder, what, note) for what, own, note in own_data if own.list_there()]
        remains[:0] = [Remains(str(path), ", ".join(filter(None, [f"the {what}", note]))) for path, what, note in there]
    else:
        files = [*own_data[:-1], *files, own_data[-1]]
    return _add_files(Installation(parts, remains, kept, folders.list_made()), files)


def _add_files(there: Installation, files: Sequence[tuple[str, OwnFiles, str]]) -> Installation:
    """Add folders of memoryd's files, each with what it is and a word about it, and name what else is in them."""
    ours = {path for _, own, _ in files for path in own.list_there()}
    mine = [own for _, own, _ in files if own.folder in own.around and (own.is_named or own.list_there())]
    foreign = {path for own in mine if own.folder.is_dir() for path in own.list_foreign()}
    remains = [Remains(str(path), "memoryd did not write it") for path in sorted(foreign - ours)]
    parts = [Part(what, own.folder, own.delete, note, own.measure()) for what, own, note in files if own.list_there()]
    return there._replace(parts=[*there.parts, *parts], remains=[*there.remains, *remains])


def _choose_alone(args: Namespace, status: Status | None) -> Path | None:
    """Return the folder of the memory that is named here, where it is not the default one and that is there too."""
    if not (args.socket or paths.list_overrides()):
        return None
    folder = Path(status.data_dir) if status and not os.environ.get("MEMORYD_DATA_DIR") else paths.data_dir()
    default = paths.default_data_dir()
    return folder if _own_data(default).list_there() and folder.resolve() != default.resolve() else None


def _find_alone(args: Namespace, keep_data: bool, answering: Status | None, folder: Path) -> Installation:
    """Look for one memory beside the default one: its daemon, its socket, its data, a service that is for it."""
    status = answering if answering and Path(answering.data_dir).resolve() == folder.resolve() else None
    own, stats = _own_data(folder), _ask(args) if status else None
    kept = count_stored(stats.memories, stats.turns, stats.by_tier) if stats else _count_kept([own])
    parts = [Part("service", path, service.uninstall) for path in service.find_units_for(folder).values()]
    parts += _find_daemon(args, status)
    if status or (not answering and (args.socket or os.environ.get("MEMORYD_SOCKET"))):
        parts += _find_sockets(args, None, status)
    remains = [_describe_default(), *_find_missing(), *_find_named()]
    remains += _find_processes(status.pid if status else 0, others=False)
    there, note = Installation(parts, remains, kept, [], alone=folder), _describe_data(own, kept)
    if keep_data:
        return there._replace(remains=[Remains(str(folder), ", ".join(filter(None, ["the data", note]))), *remains])
    return _add_files(there, [("data", own, note)])


def _describe_default() -> Remains:
    """Say that the default memory stays and what does with it, and how all of it is removed."""
    own = _own_data(paths.default_data_dir())
    what = ", ".join(filter(None, ["the default memory", _describe_data(own, _count_kept([own]))]))
    unset = [word for name in paths.list_overrides() for word in ("-u", name)]
    command = " ".join([*(["env", *unset] if unset else []), "memctl uninstall"])
    reason = f"{what}; hooks, service, settings and models stay with it; this removes all that: {command}"
    return Remains(str(own.folder), reason)


def _find_missing() -> Iterator[Remains]:
    folder = paths.data_dir()
    if os.environ.get("MEMORYD_DATA_DIR") and not folder.is_dir():
        yield Remains(str(folder), "MEMORYD_DATA_DIR names this folder, and it does not exist")


def _find_named() -> Iterator[Remains]:
    """Yield settings and models that variables name: other memories may use them too."""
    for name, path in (("MEMORYD_CONFIG", paths.config_path()), ("MEMORYD_MODEL_DIR", paths.models_dir())):
        if os.environ.get(name) and path.exists():
            yield Remains(str(path), f"{name} names it, and other memories may use it too")


def _read_settings() -> dict[str, Any] | None:
    """Return the settings; None where no daemon is installed, or none would start with this file."""
    with suppress(MemorydError):
        return effective_settings() if is_installed() else None
    return None


def _ask(args: Namespace) -> Stats | None:
    """Return what the daemon holds, None where it has ended meanwhile."""
    with suppress(Unavailable), client_for(args, autostart=False) as client:
        return client.call(GetStats(reach="all"))
    return None


def _count_kept(data: Iterable[OwnFiles]) -> str:
    files = [own.folder / DATABASE for own in data if (own.folder / DATABASE).is_file()]
    with suppress(MemorydError):  # damaged, or no daemon is installed
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
    """Return the files of agents that have hooks, and those that mention memctl and cannot be changed."""
    command = installing.own_command()
    parts, remains = [], []
    unnoted = _list_unnoted()
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
        if change.is_one:
            restore = partial(_restore, change, unnoted.get(target.path, []))
            parts.append(Part("hooks", target.path, restore, _describe_change(change)))
        elif copy.is_file() and _CALL.search(change.before or b""):
            remains.append(Remains(str(copy), _FORMER))
        elif copy.is_file():
            remove = partial(copy.unlink, missing_ok=True)
            parts.append(Part("hooks", copy, remove, "a copy that hooks made", _measure(copy)))
    return parts, remains


def _list_unnoted() -> dict[Path, list[Path]]:
    """Return files of agents with the folders in which they are, the inner ones first, in projects without a note.

    Such a project was moved, so nothing says which of its folders were made for hooks.
    """
    return {
        target.path: [folder for folder in target.path.parents if place in folder.parents]
        for place in folders.list_unnoted()
        for agent in HOSTS
        for target in installing.list_targets(agent, place)
    }


def _restore(change: FileChange, around: Iterable[Path]) -> None:
    """Take the hooks out of a file, with no copy left beside it, and remove the folders around it that are empty."""
    if installing.read_file(change.target.path) != change.after:  # else another uninstall has just done it
        installing.apply(change._replace(copy=None))
    for folder in around:
        with suppress(OSError):  # something else is in it
            folder.rmdir()


def _find_gone() -> Iterator[Remains]:
    return (Remains(str(folder), _GONE) for folder in folders.list_gone())


def _find_processes(daemon: int, others: bool = True) -> Iterator[Remains]:
    """Yield what of this user's memoryd runs beside a daemon: daemons of `others`, servers of this memory."""
    for process in sorted(PROC.glob("[0-9]*")):
        with suppress(OSError):  # it has ended, or is another user's
            words = (process / "cmdline").read_bytes().split(b"\0")
            if int(process.name) == daemon or not any(word.endswith(_PROGRAMS) for word in words[:4]):
                continue
            lines = (process / "environ").read_bytes().split(b"\0")
            variables = dict(os.fsdecode(line).partition("=")[::2] for line in lines)
            if variables.get("HOME") != os.environ.get("HOME"):
                continue
            if b"memoryd.daemon" in words:
                if others:
                    yield from _describe_daemon(process, list(map(os.fsdecode, words)), variables)
            elif all(variables.get(name) == os.environ.get(name) for name in _PLACED_BY):
                yield from _describe_server(process.name, words)


def _describe_daemon(process: Path, words: list[str], variables: dict[str, str]) -> Iterator[Remains]:
    opened = [Path(os.readlink(file)) for file in (process / "fd").iterdir()]
    folder = next((file.parent for file in opened if file.name == DATABASE), None)
    if folder is None:  # it only starts, or is about to end
        return
    places = {"MEMORYD_DATA_DIR": str(folder)}
    for name, option in (("MEMORYD_SOCKET", "--socket"), ("MEMORYD_CONFIG", "--config")):
        given = words[words.index(option) + 1] if option in words else variables.get(name)
        places |= {name: given} if given else {}
    command = " ".join([*(f"{name}={shlex.quote(place)}" for name, place in places.items()), "memctl uninstall"])
    reason = f"it is of another memory, in {folder}, which this removes: {command}"
    yield Remains(f"daemon (pid {process.name})", reason, unfinished=True)


def _describe_server(pid: str, words: list[bytes]) -> Iterator[Remains]:
    if b"web" in words or (b"mcp" in words and b"--http" in words):
        name = "web" if b"web" in words else "mcp --http"
        yield Remains(f"memctl {name} (pid {pid})", f"it still runs; this ends it: kill {pid}", unfinished=True)
    elif b"mcp" in words:
        reason = "an agent uses it: end the agent's session first, or it starts the daemon anew"
        yield Remains(f"memctl mcp (pid {pid})", reason, unfinished=True)


def _find_lines() -> Iterator[Remains]:
    """Yield files with a line of the user's own that calls memctl, or names memoryd."""
    command = installing.own_command()
    for target in _list_targets():
        with suppress(Refusal, MemorydError):
            if _CALL.search(installing.plan_uninstall(target, command).after or b""):
                yield Remains(str(target.path), "it calls memctl in an entry of yours: take that out by hand")
    for name in (*_OWN_LINES, *_OWN_FILES):
        for path in sorted(Path.home().glob(name)):
            where = _find_line_numbers(path, _NAMED)
            if where and name in _OWN_FILES:
                yield Remains(str(path), "it is for memoryd alone: delete this file")
            elif where:
                yield Remains(str(path), f"it names memoryd in {where}: take that out by hand")


def _find_excludes(hooked: Sequence[Path]) -> Iterator[Remains]:
    """Yield the files in which lines keep git from showing files with hooks: `hooks install` advises such lines."""
    for folder in folders.list_folders():
        files = [path.relative_to(folder) for path in hooked if path.is_relative_to(folder)]
        names = {os.fsencode(name) for file in files for name in (file, *file.parents)}
        pattern = re.compile(rb"^/?(?:%b)/?\s*$" % b"|".join(map(re.escape, sorted(names))))
        path = folder / ".git" / "info" / "exclude"
        if where := _find_line_numbers(path, pattern) if names else "":
            yield Remains(str(path), f"it hides files that had hooks, in {where}: take that out by hand")


def _find_line_numbers(path: Path, pattern: re.Pattern[bytes]) -> str:
    """Return in which lines of a file something is, such as `line 2` or `lines 2, 5`; empty for none."""
    lines: list[bytes] = []
    with suppress(MemorydError):
        lines = (installing.read_file(path) or b"").splitlines()
    numbers = [str(number) for number, line in enumerate(lines, 1) if pattern.search(line)]
    return f"line{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}" if numbers else ""


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


def _find_daemon(args: Namespace, status: Status | None) -> Iterator[Part]:
    if status:
        yield Part("daemon", Path(status.socket), partial(_stop, args, status), f"pid {status.pid}")


def _stop(args: Namespace, status: Status) -> None:
    """Stop a daemon, unless the end of its service has done so; raise `TimedOut`."""
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
    """Return the folder that this environment names, and the daemon's where that is another one."""
    named = [paths.data_dir(), *([Path(status.data_dir)] if status else [])]
    folders = {folder.resolve(): folder for folder in named if folder.is_dir()}
    return list(map(_own_data, folders.values()))


def _own_data(folder: Path) -> OwnFiles:
    return OwnFiles(folder, _DATA, (folder,))


def _find_models(settings: dict[str, Any] | None) -> OwnFiles:
    """Return the models, also those of a daemon that is not installed any more."""
    if is_installed():
        folder = Path(run_models("path", "--json", *(folder_options() if settings else []))["path"])
    else:
        folder = paths.models_dir(_read_models_folder())
    names = [path.parent.name for path in folder.glob(f"[!.]*/{_MANIFEST}")]
    return OwnFiles(folder, (*_MODELS, *names), (folder, *_list_own(folder.parent)))


def _read_models_folder() -> str:
    """Return the folder that the settings file names, where no daemon is installed that could read it; empty: none."""
    try:
        folder = tomllib.loads(paths.config_path().read_text(encoding="utf-8"))["model"]["folder"]
        return str(paths.config_path().parent / Path(folder).expanduser()) if folder else ""
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def _find_settings() -> OwnFiles:
    file = paths.config_path()
    return OwnFiles(file.parent, (file.name,), _list_own(file.parent))


def _list_own(folder: Path) -> tuple[Path, ...]:
    """Return a folder that memoryd has made for itself, such as `~/.cache/memoryd`, else nothing."""
    return (folder,) if folder.name.startswith("memoryd") else ()


def _measure(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder; none where it has just gone."""
    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            return sum(map(_measure, path.iterdir()))
        return path.lstat().st_size
    return 0
