"""claude-mem: the SQLite database of observations and session summaries that its worker writes.

An observation becomes a memory with its type and concepts as tags. A session summary becomes a memory of the type
`session-summary`. Both are in the namespace of their project. Prompts (`user_prompts`) and raw tool calls are left out,
since the observations were derived from them.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoryd.client.programs.importing.foreign_database import note_version, open_database, read_rows, skip_table
from memoryd.client.programs.importing.records import Account, make_record, parse_time
from memoryd.client.programs.memctl.sending import Item
from memoryd.client.protocol import Record

FILE_NAME = "claude-mem.db"
WHAT = "a database of claude-mem"
KNOWN_SCHEMA = 52
_NEEDED = {
    "observations": {"project", "type", "created_at_epoch"},
    "session_summaries": {"project", "request", "created_at_epoch"},
}
_SECTIONS = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def read(path: Path, account: Account) -> Iterator[Item]:
    """Yield the observations of a database, oldest first, then the summaries."""
    file = path / FILE_NAME if path.is_dir() else path
    with open_database(file, WHAT, _NEEDED) as connection:
        note_version(connection, account, "claude-mem", ("schema_versions", "version"), KNOWN_SCHEMA)
        for row in read_rows(connection, "SELECT * FROM observations ORDER BY id"):
            yield Item(f"{file}, observation {row['id']}", _convert_observation(account, row))
        for row in read_rows(connection, "SELECT * FROM session_summaries ORDER BY id"):
            yield Item(f"{file}, summary {row['id']}", _convert_summary(account, row))
        skip_table(connection, account, "user_prompts", "prompts of users")


def _convert_observation(account: Account, row: dict[str, Any]) -> Record | None:
    title = (row.get("title") or "").strip()
    facts = [f"- {fact}" for fact in parse_list(row.get("facts"))]
    parts = [title, row.get("subtitle"), row.get("narrative"), "\n".join(facts)]
    content = "\n\n".join(text.strip() for text in parts if text and text.strip()) or row.get("text") or ""
    return make_record(
        account,
        f"observation\0{_read_session(row)}\0{row['created_at_epoch']}\0{title or content}",
        content,
        namespace=account.namespace(row.get("merged_into_project") or row["project"]),
        type=row["type"],
        created_at=parse_time(row["created_at_epoch"], 0.0),
        summary=title if facts or row.get("narrative") else "",
        metadata={
            "tags": parse_list(row.get("concepts")),
            "files_read": parse_list(row.get("files_read")),
            "files_modified": parse_list(row.get("files_modified")),
            "session": _read_session(row),
            "agent": row.get("agent_type"),
        },
    )


def _convert_summary(account: Account, row: dict[str, Any]) -> Record | None:
    sections = [(name.replace("_", " ").capitalize(), row.get(name)) for name in _SECTIONS]
    return make_record(
        account,
        f"summary\0{_read_session(row)}\0{row['created_at_epoch']}",
        "\n\n".join(f"{name}: {text.strip()}" for name, text in sections if text and text.strip()),
        namespace=account.namespace(row.get("merged_into_project") or row["project"]),
        type="session-summary",
        created_at=parse_time(row["created_at_epoch"], 0.0),
        metadata={
            "files_read": parse_list(row.get("files_read")),
            "files_edited": parse_list(row.get("files_edited")),
            "session": _read_session(row),
        },
    )


def _read_session(row: dict[str, Any]) -> Any:
    """Return the session, whose column was renamed in claude-mem's schema 17."""
    return row.get("memory_session_id", row.get("sdk_session_id"))


def parse_list(text: Any) -> list[str]:
    """Return the texts of a JSON list, which is how claude-mem stores them; any other text is returned as one."""
    if not isinstance(text, str) or not text.strip():
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return [text.strip()]
    return [str(entry) for entry in found if entry] if isinstance(found, list) else [str(found)]
