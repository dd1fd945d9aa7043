"""Tests of ftbc.train, on networks and images of a few bytes."""
