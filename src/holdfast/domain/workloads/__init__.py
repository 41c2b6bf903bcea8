"""Every kind of work: a folder a kind, and what all kinds have in common."""
