"""Sentence encoders trained from nothing on GLUE and SuperGLUE: bags of words and BiLSTMs."""
