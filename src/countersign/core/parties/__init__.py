"""The parties behind the evidence: the operator, the accounts, and their capture processes."""
