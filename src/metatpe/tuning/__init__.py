"""`metatpe tune`: one study, several processes."""
