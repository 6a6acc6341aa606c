"""Context: from memories to the few hundred tokens that an agent needs at the start of a task."""
