"""What is looked at before something is accepted: limits, and what is named."""
