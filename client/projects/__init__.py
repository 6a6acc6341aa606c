"""Projects: the checkout that a folder is in, its namespace, and the projects that are known on this machine."""
