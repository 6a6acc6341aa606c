"""The SQL of conversations: sessions and their turns."""
