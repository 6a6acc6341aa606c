"""What an erase finds and deletes: rows, history, what was said around them, copies."""
