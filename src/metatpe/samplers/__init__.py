"""The samplers: how a configuration is chosen."""
