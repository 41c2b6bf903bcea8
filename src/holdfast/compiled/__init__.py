"""What is stored of specifications: the domain models they were compiled into, as versioned JSON."""
