"""Peers are programs of their own: pytest would import them to look for examples."""

collect_ignore_glob = ["peers/*"]
