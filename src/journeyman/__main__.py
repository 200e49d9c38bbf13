"""`python -m journeyman`."""

from journeyman.cli import main

if __name__ == "__main__":
    main()
