"""Access to a shared root in a PostgreSQL database: connections, schema, and rights.

psycopg is imported only to open a connection.
"""
