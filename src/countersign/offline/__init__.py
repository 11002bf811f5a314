"""What a stranger runs without us: `verify.py` and `verify.html`, which go into every bundle."""
