"""Looking on while jobs and job sets go on: following their logs, waiting for a state, and what Ctrl-C means then."""
