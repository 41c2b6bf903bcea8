"""The threads of a process that drives jobs, beside those of the controller and the executor."""
