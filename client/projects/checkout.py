"""Read the remote of a git checkout from its configuration file, without running git, since every hook does it."""

import os

_MAX_BYTES = 256 * 1024
_PORTS = {"ssh": ":22", "https": ":443", "http": ":80", "git": ":9418"}  # default ports


def remote_of(top: str) -> str | None:
    """Return the remote of a checkout, without scheme, user and `.git`; empty for none, None if unreadable.

    `origin` precedes other remotes. Linked worktrees of a bare repository, which have no main checkout, are identified
    by the folder of the repository.
    """
    try:
        folder, is_linked = find_repository(top)
        urls = _read_urls(_read(os.path.join(folder, "config"))) if folder else {}
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError):
        return None
    url = urls.get("origin") or next(iter(urls.values()), "")
    return _normalise(url, top) if url else folder if is_linked else ""


def list_sources(top: str) -> list[str]:
    """Return the remotes that decide whether a checkout is in a shared root: `origin`, then `upstream`, if they exist.

    The list is empty if the repository cannot be read.
    """
    try:
        urls = _read_urls(_read(os.path.join(find_repository(top)[0], "config")))
    except (OSError, UnicodeDecodeError):
        return []
    return [_normalise(urls[name], top) for name in ("origin", "upstream") if urls.get(name)]


def find_repository(top: str) -> tuple[str, bool]:
    """Return the folder of a checkout's repository, empty if there is none, and whether it is shared by worktrees."""
    folder = os.path.join(top, ".git")
    try:
        pointer = _read(folder)
    except IsADirectoryError:  # most checkouts
        return folder, False
    except FileNotFoundError:
        return "", False
    folder = os.path.join(top, pointer.removeprefix("gitdir:").strip())
    try:
        return os.path.realpath(os.path.join(folder, _read(os.path.join(folder, "commondir")).strip())), True
    except FileNotFoundError:  # a submodule
        return folder, False


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read(_MAX_BYTES)


def _read_urls(config: str) -> dict[str, str]:
    """Return the URLs of the remotes in a repository's configuration by name."""
    urls: dict[str, str] = {}
    remote = ""
    for line in config.splitlines():
        line = line.strip()
        if line.startswith("["):
            remote = line.partition('"')[2].rpartition('"')[0] if line.lower().startswith('[remote "') else ""
        elif remote and line.lower().startswith("url"):
            name, found, value = line.partition("=")
            if found and name.strip().lower() == "url":
                urls.setdefault(remote, value.strip().strip('"'))
    return urls


def _normalise(url: str, top: str) -> str:
    """Normalise a URL and remove credentials, so that all URLs of one repository are equal."""
    scheme, found, rest = url.partition("://")
    if not found and ":" in url.partition("/")[0]:  # user@host:path
        host, _, path = url.partition(":")
    elif found and scheme != "file":
        host, _, path = rest.partition("/")
        host = host.removesuffix(_PORTS.get(scheme.lower(), "/"))
    else:
        return os.path.realpath(os.path.join(top, rest if found else os.path.expanduser(url))).removesuffix(".git")
    path = path.partition("?")[0].strip("/").removesuffix(".git")
    return f"{host.rpartition('@')[2].lower()}/{path}"
