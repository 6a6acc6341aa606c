"""Workspaces: folders of Markdown files that the daemon indexes, watches and writes into.

The files are the source of truth; their rows (tier `documents`) are derived and have no history. `documents` parses
files and cuts them into chunks in a child process. The cuts depend only on the text around them, so an edit leaves
other chunks unchanged. A pass of `indexing` compares sizes and times, reads changed files, and replaces the chunks of a
file in one transaction; an unchanged chunk keeps its row, id and vector. Each workspace is watched by a thread
(`watching`, inotify). `remember` and `forget` (`writing`) edit files by `editing` and `replacing`, which writes a new
file and renames it. Calls that change memories refuse rows of files. Credentials stay in the files, but are redacted in
the index.
"""
