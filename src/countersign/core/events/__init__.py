"""Events: written in the transaction of the reported change, and read in one order."""
