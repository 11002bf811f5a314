"""The evidence log: records, sequencing, checkpoints, anchors, checks, routes and commands."""
