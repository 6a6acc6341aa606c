"""What tests of background jobs share."""

from collections.abc import Iterator

import pytest

from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner


@pytest.fixture
def jobs(core: Core) -> Iterator[Runner]:
    made = Runner(core)
    yield made
    made.close()
