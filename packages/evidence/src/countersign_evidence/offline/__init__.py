"""The verifiers in every bundle, which need no service: `verify.py` and `verify.html`."""
