"""What doctor's tests share."""

from collections.abc import Callable
from typing import Any

Doctor = Callable[..., dict[str, Any]]
