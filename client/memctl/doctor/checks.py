"""The table of checks, by area. To add one: a function that returns a finding (None where it cannot), and a row."""

from collections.abc import Callable

from memoryd.client.memctl.doctor import (
    agents,
    backups,
    database,
    files,
    installation,
    models,
    service,
    settings,
    units,
    work,
)
from memoryd.client.memctl.doctor.patient import Finding, Patient

Check = Callable[[Patient], Finding | None]

AREAS: dict[str, dict[str, Check]] = {
    "Setup": {
        "installation": installation.installation,
        "packages": installation.packages,
        "command": installation.command,
        "environment": installation.environment,
    },
    "Settings": {
        "configuration": settings.configuration,
        "configuration-file": settings.configuration_file,
        "in-force": settings.in_force,
        "key-files": settings.keys,
        "embedding-key": settings.embedding_key,
        "language-model": settings.language_model,
        "llm-answers": settings.language_model_answers,
    },
    "Process": {
        "daemon": service.daemon,
        "version": service.version,
        "service": units.service,
        "service-units": units.service_units,
        "instance": service.instance,
        "socket": service.socket,
        "stale-socket": service.stale_socket,
        "data-folder": service.data_folder,
        "load": service.load,
        "memory": service.memory,
        "swap": service.swap,
        "open-files": service.open_files,
        "threads": service.threads,
        "log": service.log,
        "log-size": service.log_size,
    },
    "Files": {
        "data": files.data,
        "writable": files.writable,
        "disk": files.disk,
        "inodes": files.inodes,
        "filesystem": files.filesystem,
        "backup": backups.backup,
        "backup-opens": backups.backup_opens,
        "leftovers": backups.leftovers,
    },
    "Storage": {
        "database": database.database,
        "schema": database.schema,
        "size": database.size,
        "size-limit": database.size_limit,
        "free-pages": database.free_pages,
        "write-ahead-log": database.log_size,
        "clock": database.clock,
    },
    "Embedding": {
        "model": models.model,
        "model-files": models.model_files,
        "model-choice": models.model_choice,
        "embeddings": models.embeddings,
        "old-vectors": models.old_vectors,
    },
    "Agents": {
        "hooks": agents.hooks,
        "hooks-waiting": agents.spooled,
        "hooks-set-aside": agents.set_aside,
        "projects": agents.known_projects,
        "mcp": agents.mcp,
    },
    "Work": {
        "jobs": work.jobs,
        "overdue": work.overdue,
        "workspaces": work.workspaces,
        "watches": work.watches,
        "tokens": work.tokens,
        "tokens-required": work.tokens_required,
    },
}

CHECKS: dict[str, Check] = {name: check for checks in AREAS.values() for name, check in checks.items()}
