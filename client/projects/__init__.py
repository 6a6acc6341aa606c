"""Projects: map folders to git checkouts and namespaces, and keep the table of known projects."""
