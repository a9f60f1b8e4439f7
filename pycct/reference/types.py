"""Names that rooms share."""

# What a candidate is collided as; the order decides between equally near ones.
TRIANGLES, SPHERE, CAPSULE, PLANE, BOX = range(5)
# Who may be met.
ACTOR, CONTROLLER, OBSTACLE = "actor", "controller", "obstacle"
# What overlap recovery may move out of, besides bodies: obstacles and controllers.
USER_GEOMETRY = "user geometry"
