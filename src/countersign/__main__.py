"""`python -m countersign` is the `countersign` command."""

from countersign.root import main

if __name__ == "__main__":
    main()
