"""Models that rate how coherent a text is, trained to tell documents from their shuffled versions."""
