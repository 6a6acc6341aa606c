"""The SQL of erasing: rows, history, texts of neighbours, copies of the database."""
