"""Zero- and few-shot answers of GLUE and SuperGLUE: templates, shots, and labels scored or generated."""
