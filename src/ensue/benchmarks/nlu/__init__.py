"""What GLUE and SuperGLUE share: examples, systems that answer them, judging, submissions and grading."""
