"""Sessions of Backend.AI's users: what their requests name, and how a request becomes a job."""
