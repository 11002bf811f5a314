"""What is wrong with a deployment, and what to do: looked at from outside, and never changed."""
