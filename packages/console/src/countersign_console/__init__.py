"""Pages for staff, over the API of Countersign. See README.md."""
