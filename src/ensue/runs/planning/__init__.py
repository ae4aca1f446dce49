"""What a run will cost: counted before it starts, by its own requests and a model that only counts."""
