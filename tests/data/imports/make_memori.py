"""Make memori.db with Memori's own SQLite driver: `pip install memori==3.3.6`, then `python make_memori.py memori.db`.

Its public calls ask a language model what to keep; this calls what they call with the answer.
"""

import sqlite3
import sys

from memori import Memori
from memori.memory._struct import SemanticTriple


def main(path: str) -> None:
    memori = Memori(conn=lambda: sqlite3.connect(path))
    memori.config.storage.build()
    driver = memori.config.storage.driver
    entity, other = driver.entity.create("customer-support"), driver.entity.create("team/platform")
    process = driver.read_process_file.create("release-agent")
    session = driver.session.create("5f0f6c9a-0000-4000-8000-000000000001", entity, process)
    conversation = driver.conversation.create(session, 30)
    driver.conversation.message.create(conversation, "user", None, "The invoices go out on the 5th")
    driver.conversation.message.create(conversation, "assistant", None, "Noted.")
    driver.conversation.update(conversation, "The day on which invoices go out was agreed.")
    facts = ["Invoices go out on the 5th of each month", "Refunds above 500 euros need two signatures"]
    driver.entity_fact.create(entity, facts, [[0.1, 0.2], [0.3, 0.4]], conversation)
    driver.entity_fact.create(entity, facts[:1], [[0.1, 0.2]], conversation)  # said a second time
    driver.entity_fact.create(other, ["The cluster has 12 nodes"], [[0.5, 0.6]])
    triple = SemanticTriple()
    triple.subject_name, triple.subject_type = "billing service", "system"
    triple.predicate = "depends on"
    triple.object_name, triple.object_type = "PostgreSQL 15", "database"
    driver.knowledge_graph.create(other, [triple])
    driver.process_attribute.create(process, ["It releases on Tuesdays"])
    memori.config.storage.adapter.commit()
    memori.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA page_size = 512")
    connection.execute("VACUUM")


if __name__ == "__main__":
    main(sys.argv[1])
