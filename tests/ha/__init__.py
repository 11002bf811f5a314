"""Three nodes from the files in deploy/ha, each part of which is killed or stopped under load."""
