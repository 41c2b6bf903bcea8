"""The stored forms of specifications and records: versioned JSON of domain models."""
