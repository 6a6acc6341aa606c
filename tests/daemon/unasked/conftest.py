"""Settings of what comes up unasked."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from memoryd.daemon.core.core import Core


@pytest.fixture
def set_hooks(core: Core) -> Callable[..., None]:
    """Return what changes the section `hooks` of the core's configuration."""

    def change(**settings: Any) -> None:
        hooks = msgspec.structs.replace(core.config.hooks, **settings)
        core.config = msgspec.structs.replace(core.config, hooks=hooks)

    return change
