"""Tests of ftbc.activation: each equation and each derivative written out naively, number by number."""
