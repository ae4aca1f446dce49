"""Boards: private test sets, submissions to them, and where each stands."""
