"""What is known before a study starts: past tasks, their encoding, densities and models."""
