"""Entity grids: which entities a text's sentences mention, and models that rate coherence by them."""
