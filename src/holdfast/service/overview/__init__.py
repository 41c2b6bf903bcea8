"""What is said of many jobs at once."""
