"""Change the configuration files of agents: first plan all changes, then apply them file by file.

A plan works on texts only, so a dry run shows the exact new content. A file that does not parse, or into which
our entries do not fit, is refused before anything is changed.

Files are replaced atomically, with their mode, through symbolic links. A copy without our entries is kept as
`FILE.memoryd.bak`, so that uninstalling can restore the exact former file.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from memoryd.client.errors import Conflict, Invalid
from memoryd.client.programs.hooks.entries import FilePart, Hooks, JsonServer, NotOurs, Plugin, TomlServer
from memoryd.client.programs.hooks.hosts import HOSTS
from memoryd.client.programs.hooks.jsontext import NotJson
from memoryd.client.programs.hooks.jsontext import parse as parsed_json
from memoryd.client.programs.hooks.tomltext import NotToml

_COPY = ".memoryd.bak"
PRIVATE, SHARED = 0o600, 0o644
UNFIT = (NotJson, NotToml, NotOurs)  # raised for a file into which our entries do not fit


class Target(NamedTuple):
    """A file, and the entries that are written into it."""

    path: Path
    parts: tuple[FilePart, ...]
    mode: int

    @property
    def is_toml(self) -> bool:
        """Whether the file is TOML rather than JSON."""
        return self.path.suffix == ".toml"

    @property
    def is_whole(self) -> bool:
        """Whether the whole file is ours."""
        return any(isinstance(part, Plugin) for part in self.parts)

    @property
    def empty(self) -> str:
        """The text of an empty file of its kind."""
        return "" if self.is_toml or self.is_whole else "{}\n"

    def add(self, text: str, command: Sequence[str]) -> str:
        """Add our entries to a text that has none of them."""
        for part in self.parts:
            text = part.add(text, command)
        return text

    def remove(self, text: str, former: str = "") -> str:
        """Remove our entries, and then empty containers unless they are in `former`."""
        for part in self.parts:
            text = part.remove(text, former or self.empty)
        return text

    def read_entries(self, text: str) -> list[list[object]]:
        """Return our entries, part by part."""
        return [part.read_entries(text) for part in self.parts]


class Refusal(Exception):
    """A file that cannot be changed; the message is one sentence."""

    def __init__(self, target: Target, reason: str) -> None:
        super().__init__(f"{target.path} cannot be changed: {reason}. Nothing was changed.")
        self.target, self.reason = target, reason


class FileChange(NamedTuple):
    """The change of one file: `after` is its new content, None to delete it; `copy` is that of its copy, likewise."""

    target: Target
    before: bytes | None
    after: bytes | None
    copy: bytes | None

    @property
    def has_effect(self) -> bool:
        """Whether the file changes."""
        return self.before != self.after


def own_command() -> list[str]:
    """Return the command that starts this memctl, with an absolute path."""
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "memctl")
    program = beside if os.access(beside, os.X_OK) else shutil.which("memctl")
    return [os.path.abspath(program)] if program else [sys.executable, "-P", "-m", "memoryd.client.programs.memctl"]


# Where agents keep their configuration -------------------------------------------------------------------------------


def list_targets(agent: str, project: Path | None) -> list[Target]:
    """Return the files of an agent, of a project or of the user."""
    host = HOSTS[agent]
    names, mode = (host.project_files or host.files, SHARED) if project else (host.files, PRIVATE)
    folder = os.environ.get(host.home) if host.home and not project else None
    return [
        Target(
            Path(folder, name.partition("/")[2] or name) if folder else (project or Path.home()) / name,
            tuple(_make_part(agent, name, kind) for kind in kinds.split()),
            mode,
        )
        for name, kinds in names.items()
    ]


def _make_part(agent: str, name: str, kind: str) -> FilePart:
    if kind == "hooks":
        return Hooks(agent)
    if kind == "plugin":
        return Plugin(agent)
    return TomlServer() if name.endswith(".toml") else JsonServer()


# Plans ---------------------------------------------------------------------------------------------------------------


def text_of(target: Target, data: bytes | None) -> str:
    """Return the text of a file, or that of a minimal valid file if it is missing or empty.

    Raise `Refusal` if the content is invalid.
    """
    try:
        text = (data or b"").decode()
    except UnicodeDecodeError as error:
        raise Refusal(target, f"it is not UTF-8 ({error.reason})") from None
    if not text.strip():
        return target.empty
    if target.is_whole:
        if any(target.read_entries(text)):
            return text
        raise Refusal(target, "it is not a file that memctl wrote")
    try:
        if not target.is_toml and not isinstance(parsed_json(text), dict):
            raise NotJson("it is not an object")
        target.read_entries(text)
    except NotJson as error:
        raise Refusal(target, f"it is not the JSON that it should be ({error})") from None
    except NotToml as error:
        raise Refusal(target, f"it is not TOML ({error})") from None
    return text


def plan_install(target: Target, command: Sequence[str]) -> FileChange:
    """Plan to add our entries to a file, if they are not in it yet."""
    before = read_file(target.path)
    text = text_of(target, before)
    bare = target.remove(text)
    try:
        made = target.add(bare, command)
    except UNFIT as error:
        raise Refusal(target, str(error)) from None
    kept = read_file(copy_of(target.path))
    if target.read_entries(text) == target.read_entries(made):
        return FileChange(target, before, before, kept)
    copy = before if bare == text else kept if kept is not None or target.is_whole else before
    return FileChange(target, before, made.encode(), copy)


def plan_uninstall(target: Target, command: Sequence[str]) -> FileChange:
    """Plan to remove our entries from a file, restoring the former file if nothing else was changed since."""
    before = read_file(target.path)
    kept = read_file(copy_of(target.path))
    text = text_of(target, before)
    if not any(target.read_entries(text)):
        return FileChange(target, before, before, kept)
    if _is_made_by(target, kept, command, text):
        return FileChange(target, before, kept, None)
    after = target.remove(text, _read_former(target, kept))
    if any(target.read_entries(after)):
        raise Refusal(target, "memoryd's lines are not between their marks any more; take them out by hand")
    if after.encode() == kept:
        return FileChange(target, before, kept, None)
    if kept is None and _is_bare(target, after):
        return FileChange(target, before, None, None)
    return FileChange(target, before, after.encode(), before)


def _read_former(target: Target, data: bytes | None) -> str:
    try:
        return text_of(target, data)
    except Refusal:
        return ""


def _is_made_by(target: Target, data: bytes | None, command: Sequence[str], text: str) -> bool:
    """Return whether adding our entries to the copy gives exactly this text."""
    try:
        return target.add(text_of(target, data), command) == text
    except (Refusal, *UNFIT):
        return False


def _is_bare(target: Target, text: str) -> bool:
    """Return whether a text has only members that an installation creates in a new file."""
    if target.is_toml or target.is_whole:
        return not text.strip()
    heads = {key for part in target.parts if isinstance(part, Hooks) for key, _ in part.host.head}
    return set(parsed_json(text)) <= heads


def apply(change: FileChange) -> None:
    """Apply a change, after writing the copy."""
    target = change.target
    if not change.has_effect:
        return
    if change.after is None:
        if read_file(target.path) == change.before:
            target.path.resolve().unlink(missing_ok=True)  # symbolic links to it are kept
        keep_copy(target.path, None)
        return
    if change.copy is not None:
        keep_copy(target.path, change.copy)
    replace_file(target.path, change.before, change.after, target.mode)
    if change.copy is None:
        keep_copy(target.path, None)


# Files ---------------------------------------------------------------------------------------------------------------


def read_file(path: Path) -> bytes | None:
    """Return the content of a file, None if it does not exist."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}.") from None


def copy_of(path: Path) -> Path:
    """Return the path of a file's copy, in the folder of the real file if the path is a link."""
    real = path.resolve()
    return real.with_name(real.name + _COPY)


def replace_file(path: Path, former: bytes | None, data: bytes, mode: int) -> None:
    """Replace the content `former` by `data` atomically; a new file gets `mode`.

    Raise `Conflict` if the file has changed.
    """
    real = path.resolve()
    real.parent.mkdir(mode=0o700 if mode == PRIVATE else 0o755, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        mode = real.stat().st_mode & 0o7777
    made, name = tempfile.mkstemp(prefix=f".{real.name}.", dir=real.parent)
    try:
        with os.fdopen(made, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(made, mode)
            os.fsync(made)
        if read_file(real) != former:
            raise Conflict(f"{path} was changed by another program just now; do it again.")
        os.replace(name, real)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def keep_copy(path: Path, data: bytes | None) -> None:
    """Write `data` as the copy of a file; None deletes the copy."""
    copy = copy_of(path)
    if data is None:
        copy.unlink(missing_ok=True)
        return
    mode = path.stat().st_mode & 0o7777 if path.exists() else PRIVATE
    replace_file(copy, read_file(copy), data, mode)
    os.chmod(copy, mode)
