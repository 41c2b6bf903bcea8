"""Terms that people and programs share, and that need nothing else: resources, kinds and states of work, settings."""
