"""Machines that break, what stands between them and their executors, and the truth about what ran on them."""
