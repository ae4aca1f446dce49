"""Annotation: projects, the people at work on them, who is given what, what they said, and what comes of it."""
