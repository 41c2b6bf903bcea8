"""How results look: tables for people, JSON, YAML and names for programs."""
