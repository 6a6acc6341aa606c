"""Taking memoryd off a machine: what there is of it, and how each part is removed."""
