"""GraphQL of Backend.AI's door; only ``endpoint`` may be imported without the library."""
