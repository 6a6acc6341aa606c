"""Threads that watch fail as a library or the database does, and go on."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryd.client.protocol import ThreadState
from memoryd.daemon.core.core import Core
from memoryd.daemon.workspaces import registry, watching
from memoryd.daemon.workspaces.live import get_live
from memoryd.daemon.workspaces.watching import Watchers
from workbench import CountingEmbedder, running, wait_until


class Panic(BaseException):
    """What a library raises that is not meant to be caught."""


def read_state(core: Core, name: str) -> ThreadState:
    return next((one for one in core.supervisor.list_states() if one.name == name), ThreadState(name=name))


@pytest.mark.slow
def test_workspaces_are_watched_once_the_database_opens_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    (folder / "notes").mkdir()
    with running(folder, CountingEmbedder()) as core:
        workspace = registry.add(core, str(folder / "notes"), None, ())
        errors, real = [apsw.CantOpenError("unable to open database file")], registry.list_all

        def everyone(core: Core) -> Any:
            if errors:
                raise errors.pop()
            return real(core)

        monkeypatch.setattr(registry, "list_all", everyone)
        watchers = Watchers(core)
        watchers.start()
        try:
            live = get_live(core, workspace)
            wait_until(lambda: live.watching == "inotify")
            assert read_state(core, "workspaces").restarts > 0
        finally:
            watchers.close()


@pytest.mark.slow
def test_a_panic_of_what_watches_a_folder_ends_nothing(folder: Path, quick: None) -> None:
    (folder / "notes").mkdir()
    panics = [Panic("poisoned lock"), Panic("poisoned lock")]

    def notify(folders: Any) -> watching.Notify:
        if panics:
            raise panics.pop()
        return watching.open_inotify(folders)

    with running(folder, CountingEmbedder()) as core:
        watchers = Watchers(core, notify)
        watchers.start()
        try:
            workspace = registry.add(core, str(folder / "notes"), None, ())
            name = f"workspace-{workspace.id}"
            live = get_live(core, workspace)
            wait_until(lambda: live.watching == "inotify")
            assert read_state(core, name).restarts == 2
            registry.remove(core, "notes")
            wait_until(lambda: name not in [one.name for one in core.supervisor.list_states()])
        finally:
            watchers.close()
