"""SQuALITY: stories, questions about them, and four summaries that people wrote in answer to each."""
