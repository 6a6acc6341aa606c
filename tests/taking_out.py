"""Capabilities that are taken out of a test's process, or put in their place, and put back."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

from memoryd.client.capabilities import list_modules
from memoryd.daemon import capability
from memoryd.daemon.capability import Capability
from memoryd.daemon.store import migrations, schema


def forget() -> None:
    """Forget which capabilities are installed."""
    for cached in (capability.installed, schema.build_schema, migrations._read_expected):
        cached.cache_clear()


@contextmanager
def only(**given: Capability) -> Iterator[None]:
    """Have some capabilities installed under these names, and no other."""
    modules = {f"capability_{name}": SimpleNamespace(CAPABILITY=one) for name, one in given.items()}
    with mock.patch.dict(sys.modules, modules), _listed({name: f"capability_{name}" for name in given}):
        yield


@contextmanager
def without(name: str) -> Iterator[None]:
    """Have a capability not installed."""
    with _listed({one: module for one, module in list_modules("daemon", "capability").items() if one != name}):
        yield


@contextmanager
def _listed(modules: dict[str, str]) -> Iterator[None]:
    with mock.patch.object(capability, "list_modules", return_value=modules):
        forget()
        try:
            yield
        finally:
            forget()
    forget()
