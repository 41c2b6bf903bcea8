"""What people are told of work: when and what, and in which words."""
