"""The operator's tools: start, doctor, backup, move, commands."""
