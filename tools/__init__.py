"""What developers run to write the files that the service ships."""
