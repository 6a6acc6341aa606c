"""The table of checks, by area. To add one: a function that returns a finding (None if it cannot check), and a row."""

from collections.abc import Callable

from memoryd.client.programs.doctor import agents, database, disk, installation, models, service, settings, work
from memoryd.client.programs.doctor.patient import Finding, Patient

Check = Callable[[Patient], Finding | None]

AREAS: dict[str, dict[str, Check]] = {
    "Setup": {
        "installation": installation.check_installation,
        "command": installation.check_command,
        "environment": installation.check_environment,
    },
    "Settings": {
        "configuration": settings.check_configuration,
        "key-files": settings.check_keys,
        "language-model": settings.check_language_model,
    },
    "Process": {
        "daemon": service.check_daemon,
        "version": service.check_version,
        "service": service.check_service,
        "socket": service.check_socket,
        "data-folder": service.check_data_folder,
    },
    "Files": {
        "data": disk.check_data,
        "disk": disk.check_disk,
        "backup": database.check_backup,
    },
    "Storage": {
        "database": database.check_database,
        "size-limit": database.check_size_limit,
    },
    "Embedding": {
        "model": models.check_model,
        "languages": models.check_languages,
        "embeddings": models.check_embeddings,
    },
    "Agents": {
        "hooks": agents.check_hooks,
        "projects": agents.check_known_projects,
        "mcp": agents.check_mcp,
    },
    "Work": {
        "jobs": work.check_jobs,
        "tokens-required": work.check_tokens,
        "workspaces": work.check_workspaces,
    },
    "Sharing": {
        "shared-roots": work.check_roots,
    },
}


def list_checks() -> dict[str, Check]:
    """Return all checks by name."""
    return {name: check for checks in AREAS.values() for name, check in checks.items()}
