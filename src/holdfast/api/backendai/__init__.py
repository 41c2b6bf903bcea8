"""Backend.AI's door: signed calls by JSON over HTTP, answered by the operations that every door uses."""
