"""Checks of the connection to coding agents: hooks, their spooled calls, the MCP server."""

import os
from importlib.util import find_spec
from pathlib import Path

from memoryd.client.errors import MemorydError
from memoryd.client.extras import advise
from memoryd.client.programs.doctor.patient import Finding, Patient, fail, quote_path, report_ok, warn
from memoryd.client.programs.hooks import folders, installing, spool
from memoryd.client.programs.hooks.commands import check_state
from memoryd.client.programs.hooks.hosts import HOSTS
from memoryd.client.programs.memctl.spooled import describe_waiting
from memoryd.client.programs.memctl.text_table import count_text
from memoryd.client.projects import known as projects
from memoryd.client.transport import paths

FULL = 0.8
OUTDATED = "outdated"


def check_hooks(patient: Patient) -> Finding | None:
    """Check that each agent's hooks are complete and call this memctl, and that the calls they spooled were sent."""
    files = _list_files()
    for file in files:
        if file["state"] not in ("installed", "not installed") and not file["state"].startswith(OUTDATED):
            return warn(f"{file['path']}: {file['state']}", "memctl hooks status")
    if wrong := _list_wrong(files):
        message = f"the hooks of {', '.join(wrong)} differ from those that this memctl installs"
        return fail(message, safe=[["memctl", "hooks", "install", agent] for agent in wrong])
    of_projects = {str(folder): _list_files(folder) for folder in folders.list_folders()}
    for folder, found in of_projects.items():
        if wrong := _list_wrong(found, hooked=True):
            message = f"the hooks of {', '.join(wrong)} in {folder} differ from those that this memctl installs"
            return fail(message, safe=[["memctl", "hooks", "install", agent, "--project", folder] for agent in wrong])
    names = dict.fromkeys(file["agent"] for file in files if file["state"] == "installed")
    number = sum(any(file["state"] == "installed" for file in found) for found in of_projects.values())
    places = ["for " + ", ".join(names)] * bool(names) + [f"in {count_text(number, 'project')}"] * bool(number)
    return _check_spooled(patient) or (report_ok(f"installed {' and '.join(places)}") if places else None)


def _list_wrong(files: list[dict[str, str]], hooked: bool = False) -> list[str]:
    """Return the agents whose entries are outdated, or in one file only; `hooked`: only those with hooks.

    In a project two agents may read one file of servers.
    """
    states = {agent: [file["state"] for file in files if file["agent"] == agent] for agent in HOSTS}
    if hooked:
        states = {agent: found for agent, found in states.items() if found[0] != "not installed"}
    old = [agent for agent, found in states.items() if any(text.startswith(OUTDATED) for text in found)]
    half = [agent for agent, found in states.items() if {"installed", "not installed"} <= set(found)]
    return list(dict.fromkeys(old + half))


def _list_files(project: Path | None = None) -> list[dict[str, str]]:
    """Return the configuration files of all agents, of a project or the user, with the state of our entries."""
    return [check_state(agent, target) for agent in HOSTS for target in installing.list_targets(agent, project)]


def _check_spooled(patient: Patient) -> Finding | None:
    """Return a finding about calls that hooks spooled while the daemon did not run, or had to drop."""
    if number := spool.count_dropped():
        path = quote_path(Path(spool.dropped_path()))
        message = f"{count_text(number, 'call')} of hooks dropped: the daemon refused them, or the spool was full"
        return warn(message, f"cat {path}; rm {path}")
    waiting = spool.count_waiting()
    if not waiting:
        return None
    message = describe_waiting(waiting)
    if Path(spool.path()).stat().st_size > FULL * spool.MAX_BYTES:
        return warn(f"{message}, and there is hardly room for more", safe=[["memctl", "up"]])
    if not patient.status:
        return warn(f"{message} for the daemon", safe=[["memctl", "up"]])
    return report_ok(f"{message}, `memctl up` or the next hook sends them")


def check_known_projects(patient: Patient) -> Finding | None:
    """Check that the table of projects can be read: without it, projects of the same name share their memories."""
    path = os.path.join(paths.data_folder(), projects.FILE)
    try:
        number = len(projects.read_table()["projects"])
    except MemorydError as error:
        return fail(error.message.split(";")[0], f"mv {quote_path(Path(path))} {quote_path(Path(path + '.damaged'))}")
    except OSError as error:
        return fail(f"{path} cannot be read: {error.strerror}", f"ls -l {quote_path(Path(path))}")
    return report_ok(f"{count_text(number, 'project')}: memctl project list") if number else None


def check_mcp(patient: Patient) -> Finding | None:
    """Check that the MCP server, which agents are configured to start, can start."""
    if find_spec("mcp") is not None:
        return report_ok("the package for `memctl mcp` is installed")
    if present := dict.fromkeys(file["agent"] for file in _list_files() if file["state"] == "installed"):
        message = f"{', '.join(present)} start `memctl mcp`, which needs a package that is not installed"
        return fail(message, advise("mcp"))
    return None
