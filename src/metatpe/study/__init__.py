"""What is known of the running study: its observations, plans and records."""
