"""What the tasks on the order of sentences share: documents, seeds, how sentences follow one another, metric rows."""
