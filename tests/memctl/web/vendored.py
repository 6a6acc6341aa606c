"""Renew what the page is given from elsewhere: python tests/memctl/web/vendored.py [VERSION]

It takes the package from the npm registry, checks it against the lock file (with a version: writes that one) and puts
the one file that the page needs into its place. Nothing is built and nothing is fetched when the page is shown.
"""

import base64
import hashlib
import json
import sys
from pathlib import Path

from axe import fetch

FOLDER = Path(__file__).parents[3] / "client" / "programs" / "web" / "static" / "vendor"
LOCK = FOLDER / "lock.json"


def digest(data: bytes) -> str:
    """Return the SHA-512 of a file as lock files write it."""
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


def renew(version: str | None) -> None:
    """Fetch the package of the lock file, or another version of it, and write file and lock."""
    entry = json.loads(LOCK.read_text())
    package = f"{entry['name']}@{version or entry['version']}"
    archive: list[bytes] = []
    data = fetch(package, "" if version else entry["integrity"].removeprefix("sha512-"), entry["member"], archive)
    entry |= {"version": version or entry["version"], "integrity": digest(archive[0]), "file_integrity": digest(data)}
    (FOLDER / entry["file"]).write_bytes(data)
    LOCK.write_text(json.dumps(entry, indent=2) + "\n")


if __name__ == "__main__":
    renew(sys.argv[1] if len(sys.argv) > 1 else None)
