"""What operators edit: its entries, the tokens among them, and how all of it is read."""
