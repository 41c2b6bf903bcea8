"""Which waiting jobs start where: capacity, GPUs one by one, and the plan of one round."""
