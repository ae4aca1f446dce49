"""Entity-grid models that tell a text from its shuffled versions."""
