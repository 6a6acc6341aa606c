"""Read the shared roots from the configuration, and find the root of a checkout by its repository.

The name of a checkout never puts it into a root. Roots are defined only by the configuration, so that a copy of the
data directory cannot create one.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from memoryd.client.patterns import compile_late
from memoryd.client.transport import paths

Roots = Mapping[str, Sequence[str]]  # name → patterns of its repositories

# A host, then at least one part without a wildcard; otherwise all checkouts of a host would be in the root.
_PATTERN = compile_late(r"[a-z0-9.-]+(:\d+)?/[^*?\[\]/\s]+(/\S*)?")
_WILDCARD = compile_late(r"[*?\[]")
_NAME = compile_late(r"[a-z][a-z0-9_]{0,39}")
_MAX_BYTES = 400


def read_roots() -> Roots:
    """Return the repositories of each root; none if the configuration cannot be read."""
    try:
        with open(paths.config_file(), "rb") as file:
            data = file.read()
        if b"shared" not in data:  # hooks call this, and parsing TOML would take longer than everything else
            return {}
        import tomllib

        sections = tomllib.loads(data.decode())["shared"]
        return {name: list(map(str, section.get("repositories", []))) for name, section in sections.items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return {}


def find_root(namespace: str, roots: Roots) -> str:
    """Return the root that contains a namespace or equals it, empty for none."""
    outermost = namespace.partition("/")[0]
    return outermost if outermost in roots else ""


def find_place(remotes: Sequence[str], roots: Roots) -> str:
    """Return the namespace in a root for a checkout, by its first remote that belongs to one; empty for none."""
    for remote in remotes:
        for root, patterns in sorted(roots.items()):
            for pattern in patterns:
                if fnmatchcase(remote.lower(), pattern.lower()) and (name := _name(remote.lower(), pattern.lower())):
                    return f"{root}/{name}"
    return ""


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a root, which also names a namespace and a section of the settings."""
    return _NAME.fullmatch(text) is not None


def is_pattern(pattern: str) -> bool:
    """Return whether a text is a pattern of repositories with a host and an owner, as in `github.com/acme/*`."""
    return _PATTERN.fullmatch(pattern.lower()) is not None


def _name(remote: str, pattern: str) -> str:
    """Return a repository's name in its root: the path after the pattern's fixed part, the same on every machine."""
    fixed = _WILDCARD.split(pattern)[0]
    parts = remote[fixed.rfind("/") + 1 :].split("/")
    is_name = all(part.strip() not in ("", ".", "..") and part.isprintable() for part in parts)
    return "/".join(parts) if is_name and len(remote.encode()) <= _MAX_BYTES else ""
