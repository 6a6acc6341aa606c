"""`make release`: install the archives that `make wheel` built as README says.

Each line of README that installs an archive of `dist/` is run with a home folder and an environment of its own, with
uv and pipx from the package index. An archive that cannot be installed by itself, has another version, lacks a file of
the packages (also plugins, pages, units), or in which the demonstration fails ends this with exit code 1. Both stay in
`dist/`.
"""

import os
import re
import subprocess
import tempfile
import venv
from pathlib import Path

import memoryd

CHECKOUT = Path(__file__).parent.parent
DIST = CHECKOUT / "dist"
PACKAGES = CHECKOUT / "src" / "memoryd"


README = (CHECKOUT / "README.md").read_text()
# How this machine reaches the package index is kept of the environment, and where models are.
_KEPT = ("LANG", "MEMORYD_MODEL_DIR", "PIP_", "UV_", "SSL_", "HTTP_PROXY", "HTTPS_PROXY", "https_proxy", "http_proxy")
_LINES = re.compile(r"^((?:uv tool|pipx|pip) install \"dist/.*?\")", re.MULTILINE)


def main() -> None:
    archives = sorted(DIST.glob("memoryd-*"))
    assert [archive.suffix for archive in archives] == [".whl", ".gz"], archives
    lines = _LINES.findall(README)
    assert all(any(archive.name in line for line in lines) for archive in archives), "README installs each of them"
    for line in lines:
        with tempfile.TemporaryDirectory(prefix="memoryd-release-") as folder:
            try_out(line, Path(folder))
        print(f"{line}: installs and runs", flush=True)
    for archive in archives:
        print(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB", flush=True)


def try_out(line: str, folder: Path) -> None:
    """Run a line of README in a new environment, then the demonstration with what it installed."""
    venv.create(folder / "environment", with_pip=True)
    programs, tools = folder / "environment" / "bin", folder / ".local" / "bin"  # uv and pipx link programs there
    kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
    environment = {**kept, "HOME": str(folder), "PATH": f"{tools}:{programs}:{os.environ['PATH']}"}

    def run(command: str) -> str:
        done = subprocess.run(
            ["bash", "-ec", command], cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout

    tool = line.split()[0]
    if tool != "pip":
        run(f"pip install --quiet --disable-pip-version-check {tool}")
    run(line)
    installed = Path(run("command -v memctl").strip())
    assert installed.parent == (programs if tool == "pip" else tools), installed
    version = run("memctl --version").split()[-1]
    assert version == memoryd.__version__, version
    python = installed.read_text().splitlines()[0].removeprefix("#!")
    package = Path(run(f'{python} -P -c "import memoryd; print(memoryd.__path__[0])"').strip())
    lacking = list_files(PACKAGES) - list_files(package)
    assert not lacking, f"{line}: it lacks {', '.join(sorted(lacking))}"
    run("memctl demo")


def list_files(package: Path) -> set[str]:
    """Return the names of the files of a package, also where its folders are symbolic links."""
    walked = os.walk(package, followlinks=True)
    paths = [Path(folder, name).relative_to(package) for folder, _, names in walked for name in names]
    return {str(path) for path in paths if path.suffix != ".pyc"}


if __name__ == "__main__":
    main()
