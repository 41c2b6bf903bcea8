"""What really runs things: local processes, and a simulation for tests."""
