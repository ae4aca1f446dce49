"""Conversions that gave GLUE and SuperGLUE tasks: SQuAD to QNLI, Winograd schemas to WNLI and WSC, NLI to RTE."""
