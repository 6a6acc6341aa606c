"""`make release`: build the source distribution and the wheel, and try each in an environment of its own.

An archive that cannot be installed by itself, has another version, lacks a file of the packages (also plugins, pages,
units), or in which the demonstration fails ends this with exit code 1. Both stay in `dist/`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import memoryd

CHECKOUT = Path(__file__).parent.parent
DIST = CHECKOUT / "dist"
PACKAGES = CHECKOUT / "src" / "memoryd"


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(DIST), str(CHECKOUT)], check=True)
    archives = sorted(DIST.iterdir())
    assert [archive.suffix for archive in archives] == [".whl", ".gz"], archives
    for archive in archives:
        with tempfile.TemporaryDirectory(prefix="memoryd-release-") as folder:
            try_out(archive, Path(folder))
        print(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB, installs and runs", flush=True)


def try_out(archive: Path, folder: Path) -> None:
    """Install an archive and run the demonstration, away from this checkout."""
    venv.create(folder / "environment", with_pip=True)
    programs = folder / "environment" / "bin"
    kept = {name: value for name, value in os.environ.items() if name in ("LANG", "MEMORYD_MODEL_DIR")}
    environment = {**kept, "HOME": str(folder), "PATH": f"{programs}:{os.environ['PATH']}"}

    def run(*words: str) -> str:
        done = subprocess.run(words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    run("pip", "install", "--quiet", "--disable-pip-version-check", f"{archive}[daemon]")
    version = run("memctl", "--version").split()[-1]
    assert version == memoryd.__version__, version
    installed = Path(run("python", "-c", "import memoryd; print(memoryd.__path__[0])").strip())
    lacking = list_files(PACKAGES) - list_files(installed)
    assert not lacking, f"{archive.name} lacks {', '.join(sorted(lacking))}"
    run("memctl", "demo", "--path", str(CHECKOUT / "docs"))


def list_files(package: Path) -> set[str]:
    """Return the names of the files of a package, also where its folders are symbolic links."""
    walked = os.walk(package, followlinks=True)
    paths = [Path(folder, name).relative_to(package) for folder, _, names in walked for name in names]
    return {str(path) for path in paths if path.suffix != ".pyc"}


if __name__ == "__main__":
    main()
