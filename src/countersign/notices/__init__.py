"""The notice files that this release ships; `init` publishes them."""
