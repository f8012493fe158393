"""What several chapters share."""
