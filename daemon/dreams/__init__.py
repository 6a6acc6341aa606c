"""Dreams: MEMORY.md of a workspace put in order with what is newer.

The nightly job compares notes of daily files that no dream has processed with the items of MEMORY.md: groups of similar
ones by cosine, then the provider names an outcome for each by number, so no text is invented. Without a language model
an item goes when another says the same, or when a newer note gives its subject another value, which then takes its
place with its date; in doubt both stay. The old file is kept and the undo noted before anything is written. What a
dream has processed is kept by hash. MEMORY.md is a person's file: it is written once somebody has allowed that for its
folder; until then a dream proposes, the job is idle.
"""
