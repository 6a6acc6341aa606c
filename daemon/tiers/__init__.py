"""The tiers: what L0, the hot buffer and the graph hold in RAM, and how they are read."""
