"""What the backfill of past sessions brings to the kernel: its call."""

from memoryd.daemon.backfill import taking
from memoryd.daemon.capability import Capability

CAPABILITY = Capability(handlers=(taking,))
