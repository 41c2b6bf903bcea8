"""Job sets (KEP-262), pure: which child jobs to create, restart and delete, how a set ends, and why."""
