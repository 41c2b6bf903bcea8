"""What the loops and use cases need of the outside world, as Protocols; adapters live elsewhere."""
