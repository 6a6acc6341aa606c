"""How often real prose and code are taken for credentials: texts that every machine with the project has."""

import sysconfig
from importlib.metadata import distributions
from pathlib import Path

import pytest

from memoryd.client.credentials import find

CHECKOUT = Path(__file__).parents[3]
STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])
KNOWN = {
    "geheim$parole",  # the example of urllib.request's own documentation: a password by all signs
    "a%20secret",  # httpx on passwords in URLs
}


def alarms(texts: dict[str, str]) -> list[str]:
    """Return what is taken for a credential, without what is known to be shown as one."""
    found = [(name, kind, text[start:end]) for name, text in texts.items() for kind, start, end in find(text)]
    return [f"{name}: {kind}: {value[:60]}" for name, kind, value in found if value not in KNOWN]


def read(paths: list[Path]) -> dict[str, str]:
    return {str(path): path.read_text(errors="replace") for path in paths if path.is_file()}


def read_library() -> dict[str, str]:
    return read(sorted(STANDARD_LIBRARY.glob("*.py")) + sorted(STANDARD_LIBRARY.glob("[a-s]*/*.py"))[:300])


def read_packages() -> dict[str, str]:
    """Return the readmes, licences and lists of files of the installed packages."""
    texts = {}
    for package in distributions():
        for file in package.files or ():
            if file.name in ("METADATA", "RECORD") or "LICENSE" in file.name or "NOTICE" in file.name:
                path = Path(str(package.locate_file(file)))
                if path.is_file() and path.stat().st_size < 400_000:
                    texts[str(file)] = path.read_text(errors="replace")
    return texts


def read_all() -> dict[str, str]:
    """Return what this machine has: the standard library, installed packages with their code, and manuals."""
    site = Path(sysconfig.get_paths()["purelib"])
    manuals = [path for path in Path("/usr/share/doc").rglob("*") if path.suffix in (".md", ".txt", ".html", ".rst")]
    library = [path for path in STANDARD_LIBRARY.rglob("*.py") if not {"site-packages", "test"} & {*path.parts}]
    code = [path for path in site.rglob("*.py") if path.stat().st_size < 400_000 and "credential" not in str(path)]
    return {**read(library), **read(code), **read_packages(), **read(manuals)}


@pytest.mark.slow
def test_the_standard_library_has_none() -> None:
    texts = read_library()
    assert sum(map(len, texts.values())) > 4_000_000
    assert alarms(texts) == []


def test_the_projects_own_files_have_none() -> None:
    folders = ("client", "daemon", "models", "scheduler", "tests")
    paths = [path for folder in folders for path in (CHECKOUT / folder).rglob("*.py")]
    paths = [
        path for path in paths if "credential" not in str(path) and "secret" not in path.name
    ]  # these are about them
    texts = read([*paths, *CHECKOUT.glob("*.md"), CHECKOUT / "pyproject.toml", CHECKOUT / "LICENSE"])
    assert sum(map(len, texts.values())) > 1_000_000
    assert alarms(texts) == []


@pytest.mark.slow
def test_readmes_and_licences_of_installed_packages_have_next_to_none() -> None:
    texts = read_packages()
    assert sum(map(len, texts.values())) > 1_000_000  # RECORD: paths and SHA-256 of thousands of files
    assert len(alarms(texts)) <= 1
