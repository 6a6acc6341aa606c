"""The way to a shared root in a PostgreSQL database: its connection, its schema, who may use it.

psycopg is imported only where somebody connects.
"""
