"""Countersign for Django: an app with everything that a shop needs for notices and clearances."""
