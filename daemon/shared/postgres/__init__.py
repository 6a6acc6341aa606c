"""A root in a PostgreSQL database: a schema of its own, which daemons of its members search and write to.

The rights are those of PostgreSQL: who may read or write is granted there, the server sets author, version and time of
a row and writes its history. psycopg is imported only where such a root is configured.
"""
