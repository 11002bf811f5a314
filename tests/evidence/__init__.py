"""Tests of the evidence code: tree, tiles, notes, proofs, policies, bundles."""
