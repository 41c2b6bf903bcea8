"""Job sets and jobs made of pods, in the controller: looks at them when something happened, and does what follows."""
