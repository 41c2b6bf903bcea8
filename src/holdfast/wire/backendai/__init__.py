"""What a client and the door of Backend.AI have in common."""
