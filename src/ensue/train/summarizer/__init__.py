"""Fine-tuning models to summarise stories in answer to questions."""
