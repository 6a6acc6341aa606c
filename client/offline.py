"""The one switch for the network: whoever is about to reach another machine asks `is_offline` first.

It is set by `offline` in [network], or by MEMORYD_OFFLINE, which holds for every process that is started with it.
"""

import ipaddress
import os

VARIABLE = "MEMORYD_OFFLINE"
_forbidden = False  # by the settings; not in the environment, where it would outlive a change of the settings


def is_offline() -> bool:
    """Return whether nothing may leave this machine."""
    return _forbidden or os.environ.get(VARIABLE, "") not in ("", "0")


def go_offline() -> None:
    """Let nothing that this process does leave this machine from now on."""
    global _forbidden
    _forbidden = True


def is_here(host: str) -> bool:
    """Return whether a name or address is this machine's own, which is reached without a network."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
