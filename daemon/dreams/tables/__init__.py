"""The tables of dreams: `dreams`, `dreamt`."""
