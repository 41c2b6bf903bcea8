"""Machines that break, the shims between them and their executors, and the truth about what ran on them."""
