"""The SQL by which new rules for credentials are applied to stored texts."""
