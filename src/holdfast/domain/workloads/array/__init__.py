"""Arrays: many tasks of one job, each with its own index or parameters."""
