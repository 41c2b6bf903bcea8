"""Terms that people and programs share, and that need nothing else: what is asked for, and how work stands."""
