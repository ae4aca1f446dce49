"""SuperGLUE: eight harder tasks and two diagnostic sets (Wang et al. 2019)."""
