"""The tables of dreams and all SQL on them."""
