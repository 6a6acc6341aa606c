"""axe-core, the accessibility checker, from the npm registry: for tests only, kept in the cache of the checkout."""

import base64
import hashlib
import subprocess
import tarfile
import tempfile
from pathlib import Path

VERSION = "4.14.1"
INTEGRITY = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="


def script(cache: Path) -> str | None:
    """Return the text of axe-core; None where npm or its registry is not there."""
    kept = cache / f"axe-{VERSION}.js"
    if not kept.exists():
        try:
            found = fetch(f"axe-core@{VERSION}", INTEGRITY, "package/axe.min.js")
        except (OSError, subprocess.SubprocessError):
            return None
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(found)
    return kept.read_text(encoding="utf-8")


def fetch(package: str, integrity: str, member: str, archives: list[bytes] | None = None) -> bytes:
    """Return one file of a package, the package too in `archives`; raise `ValueError` where it is not the known one."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True, capture_output=True, timeout=60)
        [archive] = Path(folder).glob("*.tgz")
        data = archive.read_bytes()
        if archives is not None:
            archives.append(data)
        digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
        if integrity and digest != integrity:
            raise ValueError(f"{package} has the digest {digest}, not {integrity}")
        with tarfile.open(archive) as unpacked:
            file = unpacked.extractfile(member)
            assert file is not None
            return file.read()
