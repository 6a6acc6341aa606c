"""The tables of topics and all SQL on them."""
