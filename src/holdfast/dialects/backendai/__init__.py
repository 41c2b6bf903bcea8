"""What operators write for Backend.AI's users."""
