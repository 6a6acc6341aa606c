"""Which capabilities are there: those whose folder is, unless one that they need is not."""

import pytest

from memoryd.client.capabilities import CAPABILITIES, CapabilityEntry, list_modules


@pytest.mark.parametrize(("needs", "is_there"), [((), True), (("topics",), True), (("topics", "unheard"), False)])
def test_a_capability_is_there_with_all_that_it_needs(
    monkeypatch: pytest.MonkeyPatch, needs: tuple[str, ...], is_there: bool
) -> None:
    monkeypatch.setitem(CAPABILITIES, "dreams", CapabilityEntry("dreams", needs=needs))
    for side, module in (("daemon", "capability"), ("client", "calls")):
        assert ("dreams" in list_modules.__wrapped__(side, module)) == is_there
