"""Tests of the command line, on a network and images of a few bytes."""
