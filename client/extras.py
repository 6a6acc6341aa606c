"""What to do where a part of memoryd is not installed: one sentence for all who miss one."""


def advise(extra: str) -> str:
    """Return how an installation gets an extra, whatever it was made from: a wheel, an archive, a checkout."""
    return f"install memoryd again with the extra {extra}: pip install 'FILE.whl[{extra}]'"
