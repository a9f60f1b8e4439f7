"""The crowd of peer_crowd.py moved by two threads."""
import peer_crowd

NAME = "pycct crowd"
version = peer_crowd.version


class Peer(peer_crowd.Peer):
    THREADS = 2
