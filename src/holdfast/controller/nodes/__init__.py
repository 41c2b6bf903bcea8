"""The state of nodes beyond their capacity: cordons, shortages and losses."""
