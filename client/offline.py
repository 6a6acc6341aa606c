"""The switch for the network: code that is about to reach another machine asks `is_offline` first.

The setting `offline` in [network] sets it, or the variable MEMORYD_OFFLINE in the environment of a process.
"""

import ipaddress
import os

VARIABLE = "MEMORYD_OFFLINE"
_forbidden = False  # set by the settings; an environment variable would outlive a change of the settings


def is_offline() -> bool:
    """Return whether this process must not reach other machines."""
    return _forbidden or os.environ.get(VARIABLE, "") not in ("", "0")


def go_offline() -> None:
    """Forbid this process to reach other machines from now on."""
    global _forbidden
    _forbidden = True


def is_here(host: str) -> bool:
    """Return whether a name or address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
