"""Durable storage: one SQLite file. The only package that imports apsw; everything above speaks rows and vectors."""
