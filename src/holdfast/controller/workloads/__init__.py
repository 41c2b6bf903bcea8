"""The controller's side of each kind of workload: gangs, jobs made of pods, arrays and job sets."""
