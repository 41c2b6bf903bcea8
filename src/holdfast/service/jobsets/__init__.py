"""The use cases about job sets: create and change, ask for something, explain."""
