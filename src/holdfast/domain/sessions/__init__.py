"""Sessions as Backend.AI's users know them: stretches of a job's life, each with one retry count."""
