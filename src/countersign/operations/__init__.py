"""Running a deployment: backup, housekeeping, readiness, the serving role."""
