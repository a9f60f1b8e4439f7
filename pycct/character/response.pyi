from pycct.shapes.primitives import _Number, _Point, _Vector

def slide(motion: _Vector, normal: _Vector) -> _Point: ...
def slide_crease(motion: _Vector, first: _Vector, second: _Vector) -> _Point: ...
def respond(
    target: _Vector,
    position: _Vector,
    direction: _Vector,
    normal: _Vector,
    bump: _Number = 0.0,
    friction: _Number = 1.0,
    normalize: bool = False,
) -> _Point: ...
