"""Names, launches and states of Iris, Fluster's successor: pure, and without its protobuf messages."""
