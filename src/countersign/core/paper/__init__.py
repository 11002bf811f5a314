"""Paper: PDF documents for people, made of data; their text, fonts and times."""
