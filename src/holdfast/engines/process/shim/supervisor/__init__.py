"""What happens in the process of its own that each run has, beside its program."""
