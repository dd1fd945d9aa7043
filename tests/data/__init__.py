"""Tests of ftbc.data; all files are made here in the real layouts, and none touches the network."""
