"""What the controller knows of nodes beyond their room: what is set aside, what is short, what was lost."""
