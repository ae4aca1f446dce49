"""Collecting summaries from people who review each other: rankings, payment, and what a text must be like."""
