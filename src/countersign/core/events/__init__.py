"""Events: written in the transaction of what they report, and read in one order."""
