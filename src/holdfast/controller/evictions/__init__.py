"""Takes places away from what runs there: nodes that are drained, machines that run out of memory or disk."""
