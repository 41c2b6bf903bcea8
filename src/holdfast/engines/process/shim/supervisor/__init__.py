"""The supervisor: a process beside each run's program."""
