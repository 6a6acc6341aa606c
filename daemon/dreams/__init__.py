"""Dreams: update MEMORY.md of a workspace with newer notes.

The nightly job compares the unprocessed notes of daily files with the items of MEMORY.md, in groups of similar ones. A
provider chooses an outcome for each note by its number, so no text is invented. Without a language model an item is
removed if another one says the same, or if a newer note contradicts it, which then replaces it with its date; in doubt
both stay. The old file is copied, and the undo recorded, before anything is written. Processed notes are stored by
hash. MEMORY.md belongs to a person: it is written only if that was allowed for its folder; otherwise dreams only
propose.
"""
