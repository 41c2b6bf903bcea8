"""Armada's door: its services over gRPC, answered by the operations that every door uses."""
