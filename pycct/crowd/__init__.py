"""Many characters in one call.

`crowd` defines `Crowd` and `CrowdMember`, `crowd_step` moves the members in threads, `state_io`
turns members into bytes and back, `move_many` moves lists of single controllers, and `records`
defines the arrays that a crowd returns.

May import all lower layers, and `pycct._core`.
"""
