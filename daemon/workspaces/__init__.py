"""Workspaces: folders of Markdown files that the daemon indexes, watches and writes into.

The files are the truth; their rows (tier `documents`) are derived and have no history. `documents` reads and chunks
them in a child process, since parsing is Python-heavy. Where to cut is decided by the words beside a cut, so an
edit leaves all other chunks as they are. A pass of `indexing` compares sizes and times, reads what differs, and
exchanges the chunks of a file in one transaction; a chunk that stays keeps its row, id and vector. A thread watches
each workspace (`watching`, inotify). `remember` and `forget` (`writing`) change the text as `editing` says;
`replacing` writes the new file beside the old one, compares that with what was read, and renames. Calls that change
memories refuse rows of files. Credentials stay in files; they are redacted as files are read, before they are cut into
chunks.
"""
