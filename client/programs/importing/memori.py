"""Memori (the `memori` package): the SQLite database that it writes through a connection that its user provides.

The facts of an entity, its edges in the graph and the summaries of its conversations are stored in the namespace of the
entity, the attributes of a process in that of the process. The messages themselves are left out.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoryd.client.programs.importing.foreign_database import (
    columns_of,
    note_version,
    open_database,
    read_rows,
    skip_table,
)
from memoryd.client.programs.importing.records import Account, make_record, parse_time
from memoryd.client.programs.memctl.sending import Item
from memoryd.client.protocol import Record

WHAT = "a database of Memori"
KNOWN_SCHEMA = 2
_NEEDED = {
    "memori_entity": {"id", "external_id"},
    "memori_entity_fact": {"uuid", "entity_id", "content", "num_times", "date_created"},
}
_FACTS = (
    "SELECT f.uuid, f.content, f.num_times, f.date_created, f.date_last_time, e.external_id AS place, 'fact' AS type"
    " FROM memori_entity_fact f JOIN memori_entity e ON e.id = f.entity_id ORDER BY f.id"
)
_ATTRIBUTES = (
    "SELECT a.uuid, a.content, a.num_times, a.date_created, a.date_last_time, p.external_id AS place,"
    " 'attribute' AS type FROM memori_process_attribute a JOIN memori_process p ON p.id = a.process_id ORDER BY a.id"
)
_TRIPLES = (
    "SELECT g.uuid, s.name || ' ' || p.content || ' ' || o.name AS content, g.num_times, g.date_created,"
    " g.date_last_time, e.external_id AS place, 'relation' AS type, s.name AS subject, s.type AS subject_type,"
    " p.content AS predicate, o.name AS object, o.type AS object_type FROM memori_knowledge_graph g"
    " JOIN memori_entity e ON e.id = g.entity_id JOIN memori_subject s ON s.id = g.subject_id"
    " JOIN memori_predicate p ON p.id = g.predicate_id JOIN memori_object o ON o.id = g.object_id ORDER BY g.id"
)
_SUMMARIES = (
    "SELECT c.uuid, c.summary AS content, 1 AS num_times, c.date_created, c.date_updated AS date_last_time,"
    " e.external_id AS place, 'session-summary' AS type FROM memori_conversation c"
    " JOIN memori_session s ON s.id = c.session_id LEFT JOIN memori_entity e ON e.id = s.entity_id"
    " WHERE c.summary IS NOT NULL AND c.summary <> '' ORDER BY c.id"
)
_QUERIES = {
    "memori_entity_fact": _FACTS,
    "memori_process_attribute": _ATTRIBUTES,
    "memori_knowledge_graph": _TRIPLES,
    "memori_conversation": _SUMMARIES,
}
_DETAILS = ("subject", "subject_type", "predicate", "object", "object_type")


def read(path: Path, account: Account) -> Iterator[Item]:
    """Yield facts, attributes, edges of the graph, and summaries of conversations."""
    with open_database(path, WHAT, _NEEDED) as connection:
        note_version(connection, account, "Memori", ("memori_schema_version", "num"), KNOWN_SCHEMA)
        for table, query in _QUERIES.items():
            if columns_of(connection, table):
                for row in read_rows(connection, query):
                    yield Item(f"{path}, {table} {row['uuid']}", _convert_row(account, row))
        skip_table(connection, account, "memori_conversation_message", "messages of conversations")


def _convert_row(account: Account, row: dict[str, Any]) -> Record | None:
    created_at = parse_time(row["date_created"], 0.0)
    times = row["num_times"] if isinstance(row["num_times"], int) and row["num_times"] > 1 else None
    return make_record(
        account,
        f"{row['type']}\0{row['uuid']}",
        str(row["content"]),
        namespace=account.namespace(row["place"]),
        type=row["type"],
        created_at=created_at,
        updated_at=parse_time(row["date_last_time"], created_at),
        metadata={"times": times, **{name: row.get(name) for name in _DETAILS}},
    )
