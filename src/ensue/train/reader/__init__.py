"""Readers: models that say of each sentence of a text whether it belongs, trained on texts with intruders."""
