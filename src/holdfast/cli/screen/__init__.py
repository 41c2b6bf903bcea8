"""A whole terminal that is drawn on: what `get --watch` and `top` show."""
