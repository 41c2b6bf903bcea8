"""Arrays: many tasks of one job, each with an index or parameters of its own."""
