"""What every API (REST today) shares to reach the use cases: parsing input, paging lists, building answers."""
