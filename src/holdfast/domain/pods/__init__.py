"""Jobs made of pods as Holdfast runs them: runs seen as pods, and how such a job stands among other jobs."""
