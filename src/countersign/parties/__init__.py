"""Who is behind the evidence: the operator, the accounts, and how accounts capture."""
