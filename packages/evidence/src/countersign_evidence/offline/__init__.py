"""The verifiers in every dossier, which need no service: `verify.py` and `verify.html`."""
