"""Fetch files from the Hugging Face hub, resumable, and check them against what the hub declares."""

import contextlib
import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from memoryd.models.catalog import Hub
from memoryd.models.errors import ModelUnavailable
from memoryd.models.folder import hash_file

PROBE_TIMEOUT_S = 3.0
SHA256_DIGITS = 64

Report = Callable[[int, int], None]


def fetch(hub: Hub, names: list[str], target: Path, report: Report) -> None:
    """Download `names` of a repository into `target`, resuming interrupted downloads there.

    One request finds out within seconds whether the hub can be reached; HF_HUB_OFFLINE, HF_ENDPOINT and the other
    settings of the hub's own client apply. Raises ModelUnavailable.
    """
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        with _silence_log():
            for name, (etag, size) in {name: _fetch_hash(hub, name) for name in names}.items():
                _fetch_one(hub, name, target, report, size)
                _check(target / name, etag)
    except ModelUnavailable:
        raise
    except Exception as error:  # the client raises its own, its transport's and the system's errors
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ModelUnavailable(f"the Hugging Face hub did not serve {hub.repository}: {reason}") from error


def _fetch_hash(hub: Hub, name: str) -> tuple[str, int]:
    """Fetch the hash and size of a file: the SHA-256 of a large file, the Git blob id of a small one."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(hub.repository, name, revision=hub.revision)
    facts = get_hf_file_metadata(url, timeout=PROBE_TIMEOUT_S)
    return facts.etag or "", facts.size or 0


def _fetch_one(hub: Hub, name: str, target: Path, report: Report, size: int) -> None:
    from huggingface_hub import hf_hub_download

    hf_hub_download(
        hub.repository,
        name,
        revision=hub.revision,
        local_dir=target,
        tqdm_class=_make_bar(lambda done: report(done, size)),
    )
    report(size, size)


def _check(path: Path, etag: str) -> None:
    """Compare a file with the hash that the hub declares for it."""
    if len(etag) == SHA256_DIGITS:
        found = hash_file(path)
    else:
        data = path.read_bytes()
        found = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    if found != etag:
        path.unlink()
        raise ModelUnavailable(f"the Hugging Face hub sent a {path.name} that is not what it declares; try again.")


def _make_bar(report: Callable[[int], None]) -> type[Any]:
    """Return a progress bar class that draws nothing and reports the progress of the download."""
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class Bar(tqdm):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)  # type: ignore[no-untyped-call]
            self.seen = int(options.get("initial") or 0)  # a disabled bar does not keep it

        def update(self, n: float | None = 1) -> bool | None:
            self.seen += int(n or 0)
            report(self.seen)
            return None

    return Bar


@contextlib.contextmanager
def _silence_log() -> Iterator[None]:
    """Silence the client's log: an unreachable hub is expected and reported in one sentence."""
    log = logging.getLogger("huggingface_hub")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)
