"""Fixtures: a real user manager for the session, and the service installed there for a test."""

from collections.abc import Iterator

import pytest
from user_manager import UserManager


@pytest.fixture(scope="module")
def running_manager() -> Iterator[UserManager]:
    made = UserManager()
    try:
        if reason := made.start():
            pytest.skip(reason)
        yield made
    finally:
        made.close()


@pytest.fixture
def manager(running_manager: UserManager) -> Iterator[UserManager]:
    """A user manager without service and data of memoryd."""
    running_manager.settle()
    yield running_manager
    running_manager.settle()
