"""Texts that visitors try on a model: the desk of the server, and the worker that has the model."""
