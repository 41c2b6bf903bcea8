"""Migration steps, oldest first; a published step never changes."""
