"""Tests of ftbc.zoo."""
