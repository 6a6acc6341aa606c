"""The parts of dreams: see `daemon/dreams`."""
