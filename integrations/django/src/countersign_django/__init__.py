"""Countersign for Django: an app with what a shop needs around notices and clearances."""
