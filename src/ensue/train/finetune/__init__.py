"""Fine-tuning of pretrained encoders on GLUE and SuperGLUE tasks."""
