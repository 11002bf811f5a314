"""What staff do, over the API: the operations that only answer where the console is on."""
