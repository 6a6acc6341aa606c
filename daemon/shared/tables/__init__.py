"""The tables of what is shared, in this machine's database, and all SQL on them."""
