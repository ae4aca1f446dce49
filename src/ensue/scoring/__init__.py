"""The scoring engine: log-likelihoods of many texts, each shared prefix computed once."""
