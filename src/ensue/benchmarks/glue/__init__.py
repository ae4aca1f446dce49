"""GLUE: nine tasks of sentence understanding and a diagnostic set (Wang et al. 2019)."""
