"""Put and delete many memories by their keys: all or none, in one transaction, as one operation.

Texts are embedded before the transaction, in parts between which other calls run. If the client disconnects before it
begins, nothing is changed.
"""

from memoryd.client.errors import Invalid
from memoryd.client.protocol import KeyedEntry, KeyedOutcome, Progress, Put, WerePut
from memoryd.daemon.core.core import Core
from memoryd.daemon.memories import batches, keyed, origins
from memoryd.daemon.memories.changing import delete_found
from memoryd.daemon.memories.duplicates import Embedded
from memoryd.daemon.registry import Parts, ReportProgress, handles
from memoryd.daemon.store import history, namespaces, rows
from memoryd.daemon.store.caller import USER, Caller
from memoryd.daemon.store.rows import Row
from memoryd.daemon.store.writer import Transaction, wait_patiently

_ALONE = 100  # a call with so many entries gets a transaction of its own, since large savepoints are slow


@handles(Put)
def put(core: Core, call: Put, report: ReportProgress = lambda event: None, caller: Caller = USER) -> "Parts[WerePut]":
    """Check all entries, embed their texts, then write them together."""
    check(call)
    memories = [entry.memory for entry in call.entries if entry.memory is not None]
    if memories:
        core.store.check_room()
    embedded: list[Embedded] = []
    for part in batches.split(memories):
        if embedded:
            yield
        core.check_going_on()
        embedded += core.embedding.embed_texts([memory.content for memory in part])
        report(Progress(stage="embed", done=len(embedded), total=len(memories)))
    return wait_patiently(
        lambda: core.store.write(
            lambda transaction: _write(core, transaction, call, caller, embedded),
            alone=len(call.entries) >= _ALONE,
            over_limit=not memories,
        ),
        core.check_going_on,
    )


def check(call: Put) -> None:
    """Raise if any of the entries is invalid."""
    keys: set[tuple[str, str]] = set()
    for number, entry in enumerate(call.entries):
        try:
            namespaces.check(_find_place(call, entry))
            keyed.check_key(entry.key)
            if entry.clears:
                keyed.check_key(entry.clears)
            if entry.memory is not None:
                keyed.check_memory(entry.memory)
            if (entry.below, entry.key) in keys:
                raise Invalid(f"The key {entry.key[:80]!r} is that of an earlier entry.")
        except Invalid as error:
            which = f"Entry {number}: " if len(call.entries) > 1 else ""
            raise Invalid(f"{which}{error}", {"index": number}) from None
        keys.add((entry.below, entry.key))


def _find_place(call: Put, entry: KeyedEntry) -> str:
    return "/".join(filter(None, (call.namespace, entry.below)))


def _write(core: Core, transaction: Transaction, call: Put, caller: Caller, embedded: list[Embedded]) -> WerePut:
    """Put, then delete, within one operation, which begins with the first change."""
    report, vectors = WerePut(results=[]), iter(embedded)

    def begin() -> str:
        if report.operation is None:
            place = caller.log_place(call.namespace)
            report.operation = history.begin(transaction.connection, "put", place, core.clock())
        return report.operation

    for entry in call.entries:
        if entry.memory is None:
            report.results.append(KeyedOutcome(outcome="absent"))
        else:
            place = keyed.find_place(core, transaction, _find_place(call, entry), caller)
            memory = origins.limit(entry.memory, caller)
            id, outcome = keyed.store(core, transaction, place, entry, memory, next(vectors), begin)
            report.results.append(KeyedOutcome(id=id, outcome=outcome))
    if deletions := _find_deletions(core, transaction, call, report):
        delete_found(core, transaction, deletions, begin(), caller)
    return report


def _find_deletions(core: Core, transaction: Transaction, call: Put, report: WerePut) -> list[Row]:
    """Return the rows to delete, and count each in the result of its entry."""
    connection, deletions = transaction.connection, dict[str, Row]()
    stay = {result.id for result in report.results}
    for entry, result in zip(call.entries, report.results, strict=True):
        number = core.store.namespaces.find_number(_find_place(call, entry))
        if number is None:
            continue
        row = rows.read_key(connection, number, entry.key) if entry.memory is None else None
        if row is not None and row.id not in deletions:
            deletions[row.id] = row
            if not keyed.is_expired(row, core.clock()):
                result.id, result.outcome = row.id, "deleted"
        for other in rows.read_keys(connection, number, entry.clears) if entry.clears else ():
            if other.id not in stay and other.id not in deletions:
                deletions[other.id] = other
                result.cleared += 1
    return list(deletions.values())
