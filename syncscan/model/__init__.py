"""The nouns of syncscan: frozen values that the stages pass to one another, without any I/O."""
