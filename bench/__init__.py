"""Side-by-side load measurements of Countersign; run with ``python -m bench``."""
