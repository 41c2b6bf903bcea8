"""What goes wrong in a world, and what it strikes."""
