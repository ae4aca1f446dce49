"""The scoring engine: log-likelihoods of many texts, each shared prefix computed once."""

from ensue.models.request import Policy, Request, Score

__all__ = ["Policy", "Request", "Score"]
