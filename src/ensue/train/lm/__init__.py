"""Language models fine-tuned on documents: left-to-right ones, and encoders with a masked-language-model head."""
