"""Settings, wiring and process entry points: the only place that knows every part."""
