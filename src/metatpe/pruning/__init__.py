"""Trials that stop early because past learning curves show how such trials end."""
