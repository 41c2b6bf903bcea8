"""What somebody may know: what operators gave to whom, kept at hand, and work without what is not for all eyes."""
