"""The tables of workspaces and all SQL on them."""
