"""What an operator runs: start, doctor, backup, move, commands."""
