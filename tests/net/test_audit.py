"""Audits accept honest clients and refuse cheats, and only `accept` changes anything."""

import math

import numpy as np
import pytest

from pycct import Behavior, Box, ConvexHull, Crowd, Plane, Scene, Worlds
from pycct.net import Audit, Reason
from pycct.net.simulation import DT, GRAVITY, JUMP, REST, SPEED, STEP, Arena, Clients, Network, Referee, wave

HALF_SECOND = 30


def play(clients, referee, ticks, network=None, every=3, clock=lambda t: t, before=None):
    """Ticks of clients and server; the referee keeps who was refused."""
    network = network or Network()
    n = len(clients.velocity)
    for t in range(1, ticks + 1):
        if before is not None:
            before(clients, t)
        clients.advance(clients.inputs())
        if t % every == 0:
            network.send(t, np.arange(n), np.full(n, clock(t)), clients.claims())
        referee.tick(t, network.receive(t))


def caught(referee, n, begins, within, reasons):
    """Share of members that are refused in time for one of the reasons."""
    who = {m for m, tick, why in referee.refused if begins <= tick <= begins + within and why in reasons}
    assert not [r for r in referee.refused if r[1] < begins], "refused before the cheat began"
    return len(who) / n


def honest(n, ticks, seed):
    arena, there = Arena(seed), Arena(seed)
    starts = arena.starts(n, seed + 1)
    referee = Referee(there, starts)
    play(Clients(arena, starts, seed + 2), referee, ticks, Network(seed + 3))
    return referee


@pytest.mark.parametrize("seed", [11])
def test_honest_clients_are_not_refused(seed):
    """Rounded to 1 mm in float32, at 20 Hz, with 40 ms jitter and 5 % loss."""
    referee = honest(40, 200, seed)
    assert referee.checks > 2200 and referee.refused == []


@pytest.mark.slow
def test_honest_clients_are_not_refused_in_many_claims():
    referee = honest(4000, 840, 31)
    assert referee.checks > 1_000_000 and referee.refused == []


class Cheat(Clients):
    """Walks straight on; what it does wrong is set from outside."""

    def inputs(self):
        self.velocity = np.where(self.crowd.grounded, -1.0, self.velocity) - GRAVITY * DT
        return np.column_stack([self.heading * (self.pace * DT)[:, None], self.velocity * DT])


N = 24


def spread(n=N, x=-30.0):
    return np.column_stack([np.full(n, x), np.linspace(-35, 35, n), np.full(n, REST)])


def straight(clients, pace=SPEED):
    clients.heading[:] = (1.0, 0.0)
    clients.pace[:] = pace
    return clients


@pytest.mark.parametrize("percent", [1, 10])
def test_too_fast(percent):
    clients = straight(Cheat(Arena(things=0, moving=False), spread()), SPEED)
    referee = Referee(Arena(things=0, moving=False), spread())

    def faster(c, t):
        if t == 30:
            c.pace[:] = SPEED * (1 + percent / 100)

    play(clients, referee, 80, before=faster)
    assert caught(referee, N, 30, HALF_SECOND, {Reason.SPEED}) >= 0.99


def test_flight():
    class Flies(Cheat):
        def inputs(self):
            d = super().inputs()
            if 30 <= self.tick < 36:
                d[:, 2] = JUMP * DT
            elif self.tick >= 36:
                d[:, 2] = 0.0
            return d

    for pace in (0.0, SPEED):
        clients = straight(Flies(Arena(things=0, moving=False), spread()), pace)
        referee = Referee(Arena(things=0, moving=False), spread())
        play(clients, referee, 85)
        assert caught(referee, N, 30, 6 + HALF_SECOND, {Reason.FLIGHT}) >= 0.99


def test_a_slow_fall_is_flight():
    class Glides(Cheat):
        def inputs(self):
            d = super().inputs()
            d[:, 2] = np.maximum(d[:, 2], -0.5 * DT)
            return d

    starts = np.add(spread(), (0, 0, 2.0))
    clients, referee = straight(Glides(Arena(things=0, moving=False), starts), 1.0), Referee(
        Arena(things=0, moving=False), starts)
    play(clients, referee, 60)
    assert caught(referee, N, 0, HALF_SECOND, {Reason.FLIGHT}) >= 0.99


def test_a_wall_of_ten_centimetres():
    there = Arena(things=0, moving=False)
    there.scene.add(Box((0.05, 40, 2)), (-25, 0, 2))
    clients = straight(Cheat(Arena(things=0, moving=False), spread()))
    referee = Referee(there, spread())
    play(clients, referee, 120)
    # The wall is met 4.6 m on.
    assert caught(referee, N, 50, HALF_SECOND, {Reason.BLOCKED}) >= 0.99


def test_a_wall_is_not_passed_in_silence():
    """Few claims, long ways: nobody gets through a wall of 10 cm by saying nothing for a second."""
    crowd, audit, (a, _) = small()
    crowd.scene.add(Box((0.05, 40, 2)), (2, 0, 2))
    audit.check([a], 1, [(0, 0, REST)])
    audit.accept([a])
    for t in range(1, 61):
        audit.store(t)
    for x in (1.7, 2.0, 2.2, 2.47, 3.0):
        assert audit.check([a], 61, [(x, 0, REST)]).reason.tolist() == [Reason.BLOCKED], x
    assert audit.check([a], 61, [(1.5, 0, REST)]).ok.all()


def test_a_step_of_one_and_a_half_step_offsets():
    """Constrained: otherwise the round bottom of a capsule climbs more than the step offset."""
    rules = {"climbing_mode": "constrained"}
    for step, share in ((STEP, 0.0), (1.6 * STEP, 1.0)):
        arenas = [Arena(things=0, moving=False) for _ in range(2)]
        for arena in arenas:
            arena.scene.add(Box((2, 40, 0.75 * STEP)), (-23, 0, 0.75 * STEP))
        clients = straight(Cheat(arenas[0], spread(), **rules))
        clients.crowd.set(np.arange(N), step_offset=step)
        referee = Referee(arenas[1], spread(), rules)
        play(clients, referee, 120)
        assert caught(referee, N, 50, HALF_SECOND, {Reason.STEP, Reason.FLIGHT, Reason.BLOCKED}) >= 0.99 * share
        assert share == 0.0 or any(why == Reason.STEP for _, _, why in referee.refused)
        assert share == 1.0 or not referee.refused


def test_a_blink_of_one_metre():
    clients = straight(Cheat(Arena(things=0, moving=False), spread()), 3.0)
    referee = Referee(Arena(things=0, moving=False), spread())

    def blink(c, t):
        if t == 40:
            c.crowd.teleport(np.arange(N), np.add(c.crowd.positions, (0, 1.0, 0)))

    play(clients, referee, 80, before=blink)
    assert caught(referee, N, 40, HALF_SECOND, {Reason.SPEED, Reason.TELEPORT}) >= 0.99


class Lift(Arena):
    """One lift for each client, or none where `x` says so."""

    def __init__(self, x):
        super().__init__(things=0, moving=False)
        for y in np.linspace(-35, 35, N):
            self._mover(Box((0.25, 0.25, 0.1)), (x, y, -0.15), (x, y, 2.85), 180)

    def pose(self, tick):
        super().pose(max(tick - 20, 0))


def test_riding_a_lift_is_not_flying_and_pretending_to_is():
    for x, share in ((-30.0, 0.0), (-28.0, 1.0)):
        clients = straight(Cheat(Lift(-30.0), spread()), 0.0)
        referee = Referee(Lift(x), spread())
        play(clients, referee, 120)
        refused = {m for m, tick, why in referee.refused if tick <= 30 + HALF_SECOND}
        assert len(refused) / N >= 0.99 * share and (share or not referee.refused)


def test_a_clock_that_is_two_per_cent_fast():
    clients = straight(Cheat(Arena(things=0, moving=False), spread()), 1.0)
    referee = Referee(Arena(things=0, moving=False), spread())
    play(clients, referee, 300, clock=lambda t: int(1.02 * t))
    assert caught(referee, N, 0, 306, {Reason.TIME}) >= 0.99


# --- with inputs ----------------------------------------------------------------------------------


def exact(n, ticks, seed):
    """Honest clients that send their inputs; all claims are equal to the bit."""
    arena, there = Arena(seed), Arena(seed)
    starts = arena.starts(n, seed + 1)
    clients = Clients(arena, starts, seed + 2)
    server = Crowd(there.scene, starts, step_offset=STEP)
    audit = Audit(server, SPEED, JUMP, GRAVITY, tolerance=0.0)
    moves = 0
    for t in range(1, ticks + 1):
        d = clients.inputs()
        clients.advance(d)
        there.pose(t)
        audit.store(t)
        verdicts = audit.check(server.ids, t, clients.crowd.positions, d)
        assert verdicts.ok.all(), audit.explain(int(server.ids[np.argmin(verdicts.ok)]))
        audit.accept(server.ids)
        moves += n
    assert np.array_equal(server.positions, clients.crowd.positions)
    return moves


def test_the_same_inputs_are_never_refused_in_a_million_moves():
    assert exact(5000, 200, 22) == 1_000_000


@pytest.mark.slow
def test_the_same_inputs_are_never_refused_in_ten_million_moves():
    assert exact(5000, 2000, 23) == 10_000_000


def small(**more):
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    crowd = Crowd(scene, [(0, 0, REST), (5, 0, REST)])
    audit = Audit(crowd, SPEED, JUMP, **more)
    audit.store(0)
    return crowd, audit, crowd.ids.tolist()


def test_several_ticks_of_inputs_and_wrong_ones():
    crowd, audit, (a, b) = small()
    d = np.tile((0.08, 0.0, -0.02), (2, 4, 1))
    claims = np.add(crowd.positions, (0.32, 0, 0))
    v = audit.check([a, b], 4, claims, d)
    assert v.ok.all() and np.abs(v.position - claims).max() < 1e-12
    d[1, 2] = (0.09, 0, -0.02)
    assert audit.check([a, b], 4, claims, d).reason.tolist() == [Reason.NONE, Reason.SPEED]
    d[1, 2] = (0.08, 0, 0.2)
    assert audit.check([a, b], 4, claims, d).reason.tolist() == [Reason.NONE, Reason.FLIGHT]
    d[1, 2] = math.nan
    assert audit.check([a, b], 4, claims, d).reason.tolist() == [Reason.NONE, Reason.TELEPORT]
    # Numbers that no move could take.
    for far, why in (((1e300, 0, 0), Reason.SPEED), ((0, 0, -1e300), Reason.TELEPORT), ((0, 0, 1e300), Reason.FLIGHT)):
        d[1, 2] = far
        assert audit.check([a, b], 4, claims, d).reason.tolist() == [Reason.NONE, why]
    d[1, 2] = d[0, 2]
    off = np.add(claims, [(0, 0, 0), (0.01, 0, 0)])
    v = audit.check([a, b], 4, off, d)
    assert v.reason.tolist() == [Reason.NONE, Reason.BLOCKED] and v.error[1] == pytest.approx(0.01)
    assert np.abs(v.position - claims).max() < 1e-12
    audit.accept([a, b])
    assert np.abs(crowd.positions - claims).max() < 1e-12
    # Flying by inputs: each displacement is small.
    for t in range(5, 8):
        claim = np.add(crowd.positions[:1], (0, 0, 0.01))
        v = audit.check([a], t, claim, [[0, 0, 0.01]])
        audit.accept([a])
    assert v.reason.tolist() == [Reason.FLIGHT]


def ramp(scene):
    points = [(-2, -1, 0), (-2, 1, 0), (2, -1, 0), (2, 1, 0), (2, -1, 2), (2, 1, 2)]
    scene.add(ConvexHull(points), (2.748, 26.153, 0), (0, 0, 0.6, 0.8))


def stairs(scene):
    for k, height in ((0, 0.375), (1, 0.5)):
        scene.add(Box((0.2, 1, height)), (-17.606 + 0.4 * k, -29.909, height))


# Claims of honest clients that were refused: tick, place.
FELL_ONTO_A_RAMP = [
    (84, (5.961, 26.453, 1.817)), (90, (5.462, 26.472, 1.899)), (93, (5.214, 26.501, 1.904)),
    (96, (4.976, 26.578, 1.883)), (99, (4.750, 26.686, 1.839)), (102, (4.517, 26.774, 1.769)),
    (105, (4.299, 26.867, 2.379)), (108, (4.096, 27.013, 2.555)),
]
BRUSHED_AN_EDGE = [
    (213, (-18.352, -27.913, 1.818)), (216, (-18.154, -28.065, 1.741)), (219, (-17.943, -28.200, 1.639)),
    (222, (-17.732, -28.333, 1.512)), (225, (-17.504, -28.435, 1.361)), (228, (-17.264, -28.501, 1.186)),
    (231, (-17.015, -28.502, 1.546)), (234, (-16.765, -28.502, 1.471)),
]
PRESSED_DOWN = [
    (351, (-26.724, -6.063, 0.910)), (354, (-26.911, -6.228, 1.119)), (357, (-27.038, -6.397, 1.234)),
    (360, (-27.107, -6.582, 1.142)), (363, (-27.264, -6.771, 1.090)), (366, (-27.431, -6.957, 1.024)),
]


@pytest.mark.parametrize(("build", "claims"), [(ramp, FELL_ONTO_A_RAMP), (stairs, BRUSHED_AN_EDGE)])
def test_a_fall_may_climb_a_step(build, claims):
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    build(scene)
    audit, member = follow(scene, claims[0])
    for tick, place in claims[1:]:
        audit.store(tick)
        assert audit.check([member], tick, [place]).ok.all(), audit.explain(member)
        audit.accept([member])


def follow(scene, first):
    """Return the audit of a crowd of one member that has arrived at its first claim."""
    tick, place = first
    crowd = Crowd(scene, [place], step_offset=STEP)
    audit = Audit(crowd, SPEED, JUMP, GRAVITY)
    audit.store(tick)
    member = int(crowd.ids[0])
    assert audit.check([member], tick, [place]).ok.all()
    audit.accept([member])
    return audit, member


def test_a_head_that_a_lift_presses_down_falls_by_gravity_afterwards():
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    lift = scene.add(Box((1.5, 1.5, 0.1)), (-28.881, -4.991, 0.1), body="kinematic")
    audit, member = None, 0
    claims = dict(PRESSED_DOWN)
    for tick in range(351, 367):
        lift.move_to((-28.881, -4.991, 0.1 + 2.0 * wave(tick, 240)))
        if audit is None:
            audit, member = follow(scene, PRESSED_DOWN[0])
            continue
        audit.store(tick)
        if tick in claims:
            assert audit.check([member], tick, [claims[tick]]).ok.all(), audit.explain(member)
            audit.accept([member])


def test_a_jump_off_a_ferry_between_two_claims():
    """Members fall onto a ferry, and jump off in the next tick with its speed."""
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    ferry = scene.add(Box((30, 30, 0.1)), (0, 0, 0.1), body="kinematic", behavior=Behavior.CAN_RIDE)
    places = np.column_stack([np.full(N, -20.0), np.linspace(-20, 20, N), np.linspace(1.6, 2.4, N)])
    clients = Crowd(scene, places, step_offset=STEP)
    server = Crowd(scene, places, step_offset=STEP)
    audit, velocity = Audit(server, SPEED, JUMP, GRAVITY), np.full(N, -2.0)
    for tick in range(1, 61):
        ferry.move_to((2.0 * DT * tick, 0, 0.1))
        velocity = np.where(clients.grounded, JUMP, velocity) - GRAVITY * DT
        clients.move(np.column_stack([np.full(N, SPEED * DT), np.zeros(N), velocity * DT]), DT)
        audit.store(tick)
        if tick % 6 == 0:
            claims = np.round(clients.positions, 3)
            assert audit.check(server.ids, tick, claims).ok.all()
            audit.accept(server.ids)


# --- what is promised of calls --------------------------------------------------------------------


def test_members_of_several_checks_are_accepted_at_once():
    crowd, audit, (a, b) = small()
    audit.check([a], 2, [(0.1, 0, REST)], [[(0.05, 0, -0.02)] * 2])
    audit.check([b], 1, [(5.05, 0, REST)], [(0.05, 0, -0.02)])
    audit.accept([b, a])
    assert np.abs(crowd.positions - [(0.1, 0, REST), (5.05, 0, REST)]).max() < 1e-12


def test_check_changes_nothing_and_accept_commits():
    crowd, audit, (a, b) = small()
    before = crowd.state_hash()
    first = audit.check([a, b], 3, [(0.2, 0, REST), (5.5, 0, REST)])
    again = audit.check([a, b], 3, [(0.2, 0, REST), (5.5, 0, REST)])
    for x, y in zip(first, again, strict=True):
        assert np.array_equal(x, y)
    assert crowd.state_hash() == before and first.ok.tolist() == [True, False]
    assert first.reason.tolist() == [Reason.NONE, Reason.SPEED]
    # A claim without inputs of 3 ticks and a budget of 3.6 may be 7 ticks long.
    assert first.error[1] == pytest.approx(0.5 - SPEED * DT * 4)
    assert first.position.tolist() == [[0.2, 0, REST], [5, 0, REST]]
    words = audit.explain(b)
    assert "faster than 5 m/s" in words and "corrected to (5.0000" in words and "possible" in audit.explain(a)
    audit.accept([a, b])
    assert crowd.positions.tolist() == [[0.2, 0, REST], [5, 0, REST]]
    for call in (lambda: audit.accept([a]), lambda: audit.explain(a)):
        with pytest.raises((ValueError, KeyError), match="has not been checked"):
            call()


def test_a_claim_that_is_not_accepted_counts_for_nothing():
    _, audit, (a, _) = small()
    audit.check([a], 1, [(0.3, 0, REST)])
    audit.accept([a])
    for _ in range(5):
        assert audit.check([a], 4, [(0.54, 0, REST)]).ok.all()
    assert not audit.check([a], 4, [(0.56, 0, REST)]).ok.any()


def test_ticks_that_run_backwards_are_refused():
    _, audit, (a, _) = small()
    audit.check([a], 3, [(0, 0, REST)])
    audit.accept([a])
    for tick in (3, 2, -(1 << 50)):
        v = audit.check([a], tick, [(0, 0, REST)])
        assert v.reason.tolist() == [Reason.TIME] and v.error[0] > 0
    audit.accept([a])
    assert audit.check([a], 4, [(0, 0, REST)]).ok.all()
    assert audit.check([a], 1 << 50, [(0, 0, REST)]).reason.tolist() == [Reason.TIME]


@pytest.mark.parametrize("bad", [(math.nan, 0, 0), (0, math.inf, 0), (1e300, 0, 0)])
def test_claims_that_are_no_places_get_a_verdict(bad):
    crowd, audit, (a, b) = small()
    v = audit.check([a, b], 1, [bad, (5, 0, REST)])
    assert v.ok.tolist() == [False, True] and v.reason[0] == Reason.TELEPORT and v.error[0] == math.inf
    audit.accept([a, b])
    assert crowd.positions.tolist() == [[0, 0, REST], [5, 0, REST]]


def test_members_come_and_go():
    crowd, audit, (a, b) = small()
    audit.check([a], 3, [(0.2, 0, REST)])
    audit.accept([a])
    c = int(crowd.add([(9, 0, REST)])[0])
    crowd.remove([1])
    assert audit.check([c, a], 6, [(9.1, 0, REST), (0.4, 0, REST)]).ok.all()
    with pytest.raises(KeyError, match=str(b)):
        audit.check([b], 6, [(5, 0, REST)])


def test_the_world_may_change():
    crowd, audit, (a, _) = small()
    crowd.scene.add(Box((0.05, 2, 2)), (0.7, 0, 2))
    assert audit.check([a], 4, [(0.32, 0, REST)]).reason.tolist() == [Reason.BLOCKED]
    door = crowd.scene.add_obstacle(Box((0.05, 2, 2)), (4.3, 0, 2))
    audit.store(1)
    b = int(crowd.ids[1])
    audit.check([b], 1, [(5, 0, REST)])
    audit.accept([b])
    audit.store(2)
    assert audit.check([b], 5, [(4.67, 0, REST)]).reason.tolist() == [Reason.BLOCKED]
    door.move_to((4.3, 0, 20))
    audit.store(3)
    assert audit.check([b], 5, [(4.67, 0, REST)]).ok.all()


def test_each_member_is_judged_by_its_own_parameters():
    """Both clients climb a kerb that is too high for the first member of the server."""
    crowd, _, ids = small()
    crowd.scene.add(Box((0.5, 9, 0.15)), (1.5, 0, 0.15))
    crowd.scene.add(Box((0.5, 9, 0.15)), (6.5, 0, 0.15))
    clients = Crowd(crowd.scene, crowd.positions, climbing_mode="constrained", step_offset=0.5, layer=0)
    crowd.set([0, 1], climbing_mode="constrained", step_offset=[0.1, 0.5])
    # A jump would lead onto the kerb.
    audit = Audit(crowd, SPEED, 0.0)
    refused = set()
    for tick in range(1, 19):
        clients.move([(0.08, 0, -0.02)] * 2, DT)
        audit.store(tick)
        if tick % 3 == 0:
            verdicts = audit.check(ids, tick, clients.positions)
            refused |= set(np.flatnonzero(~verdicts.ok).tolist())
            audit.accept(ids)
    assert clients.positions[0, 2] > REST + 0.2 and refused == {0}


@pytest.mark.parametrize(("call", "error", "match"), [
    (lambda a, i: a.check([99], 1, [(0, 0, 0)]), KeyError, "99"),
    (lambda a, i: a.check([i, i], 1, [(0, 0, 0)] * 2), ValueError, "ids must be different"),
    (lambda a, i: a.check([i], [1, 2], [(0, 0, 0)]), ValueError, "ticks"),
    (lambda a, i: a.check([i], 1.5, [(0, 0, 0)]), TypeError, "ticks"),
    (lambda a, i: a.check([i], 1, [(0, 0)]), ValueError, "claimed_positions"),
    (lambda a, i: a.check([i], 1, "abc"), TypeError, "claimed_positions"),
    (lambda a, i: a.check([i], 1, [(0, 0, 0)], [(0, 0)]), ValueError, "inputs"),
    (lambda a, i: a.check([i], 1, [(0, 0, 0)], ["abc"]), TypeError, "inputs"),
    (lambda a, i: a.accept([99]), KeyError, "99"),
    (lambda a, i: a.store(0), ValueError, "newest stored tick 0"),
    (lambda a, i: a.store(0.5), TypeError, "tick"),
    (lambda a, i: a.explain("x"), TypeError, "id"),
])  # fmt: skip
def test_bad_input_is_named(call, error, match):
    crowd, audit, (a, _) = small()
    before = crowd.state_hash()
    with pytest.raises(error, match=match):
        call(audit, a)
    assert crowd.state_hash() == before


def test_bad_audits():
    crowd, _, _ = small()
    for name in ("speed", "jump", "gravity", "tolerance", "budget", "dt", "fall"):
        for bad, error in ((-1, ValueError), (math.nan, ValueError), ("1", TypeError), (None, TypeError)):
            with pytest.raises(error, match=name):
                Audit(crowd, **({"speed": 1.0, "jump": 1.0} | {name: bad}))
    with pytest.raises(TypeError, match="crowd"):
        Audit(None, 1, 1)
    with pytest.raises(ValueError, match="Worlds"):
        Audit(Crowd(Worlds([Scene()]), [(0, 0, 0)]), 1, 1)
    with pytest.raises(ValueError, match="store"):
        Audit(crowd, 1, 1).check(crowd.ids, 1, crowd.positions)


def test_nobody_to_check():
    crowd = Crowd(Scene(), np.zeros((0, 3)))
    audit = Audit(crowd, 1, 1)
    audit.store(0)
    v = audit.check([], [], np.zeros((0, 3)))
    assert v.ok.shape == (0,) and v.position.shape == (0, 3)
    audit.accept([])
