"""Checks of the configuration, and of the services and keys that it names."""

import os
import stat
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from memoryd.client.errors import MemorydError
from memoryd.client.offline import is_here
from memoryd.client.programs.doctor.patient import Finding, Patient, check_access, fail, quote_path, report_ok, warn
from memoryd.client.programs.memctl.local import is_installed, read_output
from memoryd.client.programs.memctl.model import API
from memoryd.client.programs.memctl.text_table import shorten, to_one_line
from memoryd.client.protocol import GetStats
from memoryd.client.transport import paths

LIMIT_S = 3.0
RESTART = [["memctl", "up", "--restart"]]  # the same installation, on its socket
SHOW = "memctl config show"
MANY_FAILURES = 0.2


def check_configuration(patient: Patient) -> Finding | None:
    """Check that the configuration is valid, that the daemon has loaded it, and that nobody else can change it.

    Whoever can change it could have texts sent elsewhere, since it names the addresses of models.
    """
    path = paths.config_path()
    if is_installed():
        try:
            read_output("memoryd.daemon", ["--print-config"])
        except MemorydError as error:
            return fail(_message_of(error.message), f'"${{EDITOR:-vi}}" {quote_path(path)}')
    if not path.is_file():
        return report_ok("no file, the defaults hold") if is_installed() else None
    status = path.stat()
    if status.st_uid not in (os.getuid(), 0):
        return fail(f"{path} belongs to another user", f"sudo chown {os.getuid()} {quote_path(path)}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return fail(f"others may change {path}", safe=[["chmod", "go-w", str(path)]])
    if patient.status and status.st_mtime > patient.answered_at - patient.status.uptime_s:
        return warn(f"{path} was changed after the daemon started: the changes are not in force", safe=RESTART)
    return report_ok(str(path))


def _message_of(line: str) -> str:
    """Return the message in a line of the daemon's log, the line itself if it has none."""
    message = line.partition(' msg="')[2]
    return message[:-1].replace('\\"', '"').replace("\\\\", "\\") if message.endswith('"') else line


def check_keys(patient: Patient) -> Finding | None:
    """Check that nobody else can read the files with keys, and that an embedding model behind an API has a key."""
    if not patient.settings:
        return None
    named = [patient.settings[section]["key_file"] for section in ("llm", "embedding_api")]
    files = [path for name in named if name and (path := Path(name).expanduser()).is_file()]
    for path in files:
        if wrong := check_access(path, 0o600):
            return wrong
    name = patient.status.model.name if patient.status else patient.settings["model"]["name"]
    api = patient.settings["embedding_api"]
    if name.startswith(API) and not is_here(urlsplit(api["url"]).hostname or ""):  # one on this machine needs none
        if api["key_file"] and not os.access(Path(api["key_file"]).expanduser(), os.R_OK):
            return fail(f"the key is in {api['key_file']}, which cannot be read", SHOW)
        if not api["key_file"] and not os.environ.get(api["key_env"]):
            neither = f"neither `key_file` in [embedding_api] nor ${api['key_env']} here"
            return warn(
                f"there is no key for {api['url']}: {neither}",
                f"set `key_file` in {paths.config_path()}, then: memctl up --restart",
            )
        if not files:
            return report_ok(f"the key is in ${api['key_env']}; the daemon must have been started with it")
    return report_ok(f"{', '.join(map(str, files))}: private to you") if files else None


def check_language_model(patient: Patient) -> Finding | None:
    """Check that the language model's server answers, and how often its calls failed since the daemon started."""
    settings = patient.settings or {}
    llm = settings.get("llm", {})
    if not llm.get("url"):
        return None
    if not llm["model"]:
        return fail(f"[llm] has a url and no model: {llm['url']}", f"set `model` in {paths.config_path()}")
    if settings["network"]["offline"] and not is_here(urlsplit(llm["url"]).hostname or ""):
        return warn(f"{llm['url']} is not asked, since `offline` is set: rules do its work", SHOW)
    if (reason := _ask_models(llm)) is not None:
        return fail(f"{llm['url']}: {reason}; rules do its work meanwhile", f"curl {llm['url'].rstrip('/')}/models")
    usage = patient.client.call(GetStats(reach="all")).llm if patient.status else None
    if usage and usage.failures > MANY_FAILURES * usage.requests:
        latest = shorten(to_one_line(usage.last_error), 120)
        message = f"{usage.failures:,} of {usage.requests:,} questions failed, the latest: {latest}"
        return warn(message, "memctl stats")
    return report_ok(f"{llm['model']} at {llm['url']} answers")


def _ask_models(llm: dict[str, Any]) -> str | None:
    """Request a server's list of models; return the error, if any. Only a refused key makes an answer an error."""
    from urllib.error import HTTPError, URLError
    from urllib.request import ProxyHandler, Request, build_opener

    key = paths.read_token(os.path.expanduser(llm["key_file"])) if llm["key_file"] else os.environ.get(llm["key_env"])
    request = Request(f"{llm['url'].rstrip('/')}/models", headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        is_local = is_here(urlsplit(llm["url"]).hostname or "")
        build_opener(*[ProxyHandler({})] * is_local).open(request, timeout=LIMIT_S).close()
    except HTTPError as error:
        error.close()
        return f"the key is refused ({error.code})" if error.code in (401, 403) else None
    except (URLError, OSError, ValueError) as error:
        return str(getattr(error, "reason", error))
    return None
