"""The files of `deploy/`, judged by the programs that read them."""
