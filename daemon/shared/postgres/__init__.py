"""A root in a PostgreSQL database: one schema, which the daemons of its members search and write to.

Access is granted by PostgreSQL's own privileges. The server sets the author, version and time of a row, and writes its
history. psycopg is imported only if such a root is configured.
"""
