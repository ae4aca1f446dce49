"""Work on many machines: Ray's actors, each with the model in memory."""
