"""Submissions to GLUE and SuperGLUE: the official files written, read back from a zip nobody trusts, and graded."""
