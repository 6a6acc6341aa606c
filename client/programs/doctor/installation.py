"""Checks of the installation: packages, the command, the environment."""

import os
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import memoryd
from memoryd.client.extras import advise
from memoryd.client.programs.doctor.patient import Finding, Patient, fail, report_ok, warn
from memoryd.client.programs.memctl.local import MISSING, is_installed
from memoryd.client.transport import paths

# Known environment variables; a test compares them with those in the source.
VARIABLES = frozenset(
    "MEMORYD_CONFIG MEMORYD_DATA_DIR MEMORYD_LLM_KEY MEMORYD_MODEL_DIR MEMORYD_NAMESPACE MEMORYD_OBSERVE"
    " MEMORYD_OFFLINE MEMORYD_SOCKET MEMORYD_TOKEN".split()
)
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,]*\])?(?P<versions>[^;]*)(?:;(?P<markers>.*))?")


def check_installation(patient: Patient) -> Finding:
    """Check that the daemon's packages are installed, in the versions that memoryd requires."""
    if not is_installed():
        return warn(MISSING.split(";")[0], advise("daemon"))
    if wrong := _list_wrong_packages():
        return fail("; ".join(wrong[:4]), advise("daemon"))
    return report_ok(f"memoryd {memoryd.__version__} with the daemon's packages")


def _list_wrong_packages() -> list[str]:
    """Return problems of the daemon's packages; none if memoryd is run from a source folder."""
    try:
        wanted = [_REQUIREMENT.fullmatch(line) for line in requires("memoryd") or []]
    except PackageNotFoundError:
        return []
    chosen = [found for found in wanted if found and "extra == 'daemon'" in _normalise(found["markers"])]
    return [text for found in chosen if _is_applicable(found["markers"]) and (text := _missing_text(found))]


def _normalise(markers: str | None) -> str:
    return (markers or "").replace('"', "'")


def _is_applicable(markers: str | None) -> bool:
    """Return whether a requirement applies to this Python; the only marker in use is its version."""
    found = re.search(r"python_version (<|>=) '3\.(\d+)'", _normalise(markers))
    return not found or (sys.version_info.minor < int(found[2])) == (found[1] == "<")


def _missing_text(requirement: re.Match[str]) -> str:
    name = requirement["name"]
    try:
        present = version(name)
    except PackageNotFoundError:
        return f"{name} is missing"
    least = re.search(r">=\s*([\d.]+)", requirement["versions"])
    if least and _parse_version(present) < _parse_version(least[1]):
        return f"{name} {present} is older than {least[1]}"
    return ""


def _parse_version(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]


def check_command(patient: Patient) -> Finding:
    """Find out which memctl a shell, a hook or an agent would run."""
    from shutil import which

    program, own = which("memctl"), Path(sys.prefix) / "bin" / "memctl"
    if program is None:
        fix = f"export PATH={own.parent}:$PATH" if own.exists() else "pip install memoryd"
        return warn("there is no memctl on $PATH, so agents and shells do not find it", fix)
    present = [os.path.join(folder, "memctl") for folder in os.environ.get("PATH", "").split(os.pathsep)]
    others = [path for path in present if os.access(path, os.X_OK) and not os.path.samefile(path, program)]
    if own.exists() and not os.path.samefile(program, own):
        return warn(f"memctl on $PATH is {program}, this one is {own}", f"export PATH={own.parent}:$PATH")
    if others:
        return warn(f"{program} precedes {others[0]}", f"{Path(sys.prefix) / 'bin' / 'pip'} show memoryd")
    return report_ok(program)


def check_environment(patient: Patient) -> Finding:
    """Look for variables that memoryd does not know: most are misspelt."""
    settings = patient.settings or {}
    known = VARIABLES | {settings[name]["key_env"] for name in ("llm", "embedding_api") if settings}
    strange = sorted(name for name in os.environ if name.startswith("MEMORYD_") and name not in known)
    if strange:
        from difflib import get_close_matches

        near = get_close_matches(strange[0], VARIABLES, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        return warn(f"{', '.join(strange)}: not a variable of memoryd{meant}", f"unset {' '.join(strange)}")
    variables = sorted(name for name in os.environ if name in VARIABLES)
    message = f"set here: {', '.join(variables)}" if variables else "nothing is set, the defaults hold"
    if own := " and ".join(paths.list_overrides()):
        message += f"; an agent that is started without {own} uses another memory"
    return report_ok(message)
