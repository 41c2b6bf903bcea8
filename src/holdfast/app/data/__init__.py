"""The data directory and its database: where they are, and whose."""
