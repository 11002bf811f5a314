"""What pages are made with: screens, words, colors, forms."""
