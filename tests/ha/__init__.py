"""Three nodes from the files in deploy/ha, of which each part is killed or stopped under load."""
