"""Following jobs and job sets: printing their logs, waiting for a state, and what Ctrl-C means meanwhile."""
