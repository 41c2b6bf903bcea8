"""The controller's side of each kind of work: gangs, jobs made of pods, and job sets."""
