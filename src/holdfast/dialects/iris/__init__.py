"""Names, launches and states as users of Iris, Fluster's heir, have them: pure, and without its messages."""
