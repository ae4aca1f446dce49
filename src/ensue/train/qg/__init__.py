"""Training a question generator: a small adapter that continues a text and an answer with the question."""
