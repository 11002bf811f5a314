"""People who use the console: invitations, roles and sign-in."""
