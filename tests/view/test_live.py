"""Live views: what they draw and explain, and what pages in a real browser do."""

import socket
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from pycct import Box, CharacterController, Crowd, Plane, Scene
from pycct.cli.main import main
from pycct.record import record, replay
from pycct.view import Game, view

DT = 1 / 60
SECONDS = 60  # a browser without a graphics card is slow


def until(condition):
    """Wait for a condition."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def room():
    """A floor with a wall."""
    scene = Scene()
    scene.add(Plane((0, 0, 1)))
    scene.add(Box((0.1, 5, 1)), (1, 0, 1))
    return scene


def answer(port, host, origin, upgrade):
    """Status of the answer to a request with these headers."""
    lines = ["GET / HTTP/1.1", f"Host: {host}"]
    if origin is not None:
        lines.append(f"Origin: {origin}")
    if upgrade:
        lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                  "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg=="]
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(connection.recv(64).split()[1])


def test_without_viser_the_message_names_the_extra(monkeypatch, recorded, capsys):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'pycct\[view\]'"):
        view(Scene(), open_browser=False)
    assert main(["view", str(recorded), "--no-browser"]) == 1
    assert main(["play", "--no-browser"]) == 1
    assert capsys.readouterr().err.count("pycct[view]") == 2


class TestViews:
    @pytest.fixture(autouse=True)
    def _viser(self):
        pytest.importorskip("viser")

    def test_arguments_are_checked(self, recorded):
        with pytest.raises(TypeError, match="what must be"):
            view(object(), open_browser=False)
        with pytest.raises(TypeError, match="crowd is for a scene"):
            view(replay(recorded), Crowd(Scene(), np.zeros((0, 3))), open_browser=False)
        with pytest.raises(ValueError, match="fps must be > 0"):
            view(replay(recorded), fps=0.0, open_browser=False)
        with pytest.raises(ValueError, match="crowd must belong"):
            view(Scene(), Crowd(Scene(), np.zeros((0, 3))), open_browser=False)
        with pytest.raises(OSError, match=r"assign|available|address"):
            view(Scene(), host="192.0.2.1", open_browser=False)

    def test_it_listens_on_the_loopback_interface_and_prints_its_address(self, capsys):
        with view(room(), open_browser=False) as shown:
            assert shown.address in capsys.readouterr().out
            port = int(shown.address.rsplit(":", 1)[1])
            socket.create_connection(("127.0.0.1", port), 5).close()
            with pytest.raises(OSError):
                socket.create_connection(("127.0.0.2", port), 5)

    def test_pages_of_other_sites_cannot_connect(self):
        """The server answers 403 to a foreign Origin, and to a foreign name of this machine."""
        with view(room(), open_browser=False) as shown:
            port = int(shown.address.rsplit(":", 1)[1])
            own, other = f"localhost:{port}", f"evil.example:{port}"
            for host, origin, upgrade, wanted in (
                (own, f"http://{own}", True, 101), (own, None, True, 101), (own, None, False, 200),
                (f"127.0.0.1:{port}", f"http://127.0.0.1:{port}", True, 101),
                (own, "http://evil.example", True, 403), (own, f"http://{other}", True, 403),
                (other, f"http://{other}", True, 403), (other, None, False, 403), (own, "null", True, 403),
                (own, f"http://localhost:{port + 1}", True, 403), (own, f"https://evil.example#{own}", True, 403),
                (own, f"http://{own}@evil.example", True, 403), (f"{own}.evil.example", None, True, 403),
                (own, f"http://{own}\r\nOrigin: http://evil.example", True, 403),
            ):
                assert answer(port, host, origin, upgrade) == wanted, (host, origin)

    def test_which_requests_are_foreign(self):
        from pycct.view.guard import is_foreign

        assert not is_foreign("0.0.0.0", "game.local:8080", "http://game.local:8080")
        assert not is_foreign("192.168.1.5", "192.168.1.5:8080", None)
        assert not is_foreign("::1", "[::1]:8080", "http://[::1]:8080")
        assert not is_foreign("127.0.0.1", "localhost", "http://localhost:80")
        for host, asked, origin in (("0.0.0.0", "game.local:8080", "http://evil.example"), ("127.0.0.1", None, None),
                                    ("127.0.0.1", "localhost:x", None),
                                    ("127.0.0.1", "localhost", "https://localhost:80"),
                                    ("127.0.0.1", "localhost", "file://localhost"), ("::1", "[::1", None)):
            assert is_foreign(host, asked, origin)

    def test_no_page_can_open_a_tunnel(self):
        with view(room(), open_browser=False) as shown:
            assert shown.stage.server.request_share_url() is None
            assert shown.stage.server._share_tunnel is None

    def test_values_of_pages_are_checked(self):
        with view(room(), open_browser=False) as shown:
            stage = shown.stage
            seen = {}
            gui = SimpleNamespace(
                add_slider=lambda *a: SimpleNamespace(on_update=lambda f: seen.update(slider=f)),
                add_dropdown=lambda *a, **b: SimpleNamespace(on_update=lambda f: seen.update(choice=f)))
            stage.server, server = SimpleNamespace(gui=gui), stage.server
            stage.slider("a", 0.0, 1.0, 0.1, 0.5)
            stage.choice("b", ["x", "y"], "x")
            stage.server = server

            def sent(widget, value, client=True):
                seen[widget](SimpleNamespace(target=SimpleNamespace(value=value), client=client or None))
                return list(stage.requests())

            assert sent("slider", 0.25) == [("a", 0.25)]
            assert sent("slider", 7) == [("a", 1.0)]
            assert sent("choice", "y") == [("b", "y")]
            for value in (float("nan"), float("inf"), "1", None, [1], {"a": 1}):
                assert sent("slider", value) == []
                assert sent("choice", value) == []
            assert sent("slider", 0.25, client=False) == []
            for _ in range(3000):
                stage._ask("a", 1)
            assert len(list(stage.requests())) == 1000

    def test_a_member_of_a_running_program_is_explained_and_not_disturbed(self):
        hashes = []
        for watched in (False, True):
            scene = room()
            crowd = Crowd(scene, [(0, 0, 0.91), (0, 2, 0.91)])
            shown = view(scene, crowd, open_browser=False) if watched else None
            for _ in range(20):
                if shown:
                    shown.stage._ask("character", int(crowd.ids[0]))
                    shown.drawn = 0.0
                    shown.update()
                    shown.due = 0.0
                    here = CharacterController(room(), position=crowd.positions[0])
                    told = str(here.explain((0.05, 0, -0.01), DT))
                crowd.move([(0.05, 0, -0.01), (0, 0.05, -0.01)], DT, record_hits=True)
                if shown:
                    assert shown.explained == told
            if shown:
                shown.drawn = 0.0
                shown.update()
                assert "hits &lt;Actor 1" in shown.text.content
                assert shown.stage._arrows.points.shape[1:] == (2, 3)
                shown.close()
                assert crowd.journal is None
            hashes.append((crowd.state_hash(), CharacterController(scene).id))
        assert hashes[0] == hashes[1]

    def test_a_controller_of_a_running_program_is_explained(self):
        scene = room()
        hero = CharacterController(scene, position=(0, 0, 0.91))
        with view(scene, open_browser=False) as shown:
            shown.stage._ask("character", hero.id)
            hero.move((0.7, 0, -0.01), DT)
            shown.drawn = 0.0
            shown.update()
            assert shown.explained == str(hero.explain_last())

    def test_a_view_beside_a_recording_has_no_explanation(self, tmp_path):
        scene = room()
        crowd = Crowd(scene, [(0, 0, 0.91)])
        with record(tmp_path / "r", scene, crowd), view(scene, crowd, open_browser=False) as shown:
            shown.stage._ask("character", int(crowd.ids[0]))
            crowd.move([(0.05, 0, -0.01)], DT)
            shown.drawn = 0.0
            shown.update()
            assert "journal of the crowd is in use" in shown.text.content

    def test_a_scene_that_changes_is_drawn_again(self):
        scene = room()
        lift = scene.add(Box((1, 1, 0.1)), (-3, 0, 0.1), body="kinematic")
        stone = scene.add_obstacle(Box((1, 1, 1)), (5, 5, 1))
        crowd = Crowd(scene, [(0, 0, 0.91)])
        with view(scene, crowd, open_browser=False) as shown:
            assert set(shown.stage._movers) == {lift.id, stone.id}
            lift.move_to((-3, 0, 2))
            scene.remove(stone)
            crowd.add([(3, 3, 0.91)] * 3000, radius=0.2)
            shown.drawn = 0.0
            shown.update()
            assert set(shown.stage._movers) == {lift.id}
            assert tuple(shown.stage._movers[lift.id].position) == (-3, 0, 2)
            assert sorted(len(rows) for rows, _ in shown.stage._groups) == [1, 3000]

    def test_the_timeline_of_a_running_program(self, monkeypatch):
        """It goes back to each of the last ticks, and to the present; the program goes on."""
        from pycct.view import live

        monkeypatch.setattr(live, "_HISTORY_MOVES", 50 * (2 + live._POSE))
        scene = room()
        lift = scene.add(Box((1, 1, 0.1)), (-3, 0, 0.1), body="kinematic")
        crowd = Crowd(scene, [(0, 0, 0.91), (0, 2, 0.91)])
        with view(scene, crowd, open_browser=False) as shown:
            places = [crowd.positions.copy()]

            def tick(*asked):
                for one in asked:
                    shown.stage._ask(*one)
                lift.move_to((-3, 0, 0.1 + 0.01 * len(places)))
                crowd.move([(0.01, 0, -0.01), (0, 0.01, -0.01)], DT)
                places.append(crowd.positions.copy())
                shown.drawn = 0.0
                shown.update()

            def drawn():
                return np.concatenate([handle.batched_positions for _, handle in shown.stage._groups])

            def is_tick(k):
                high = shown.stage._movers[lift.id].position[2]
                return (drawn() == places[k].astype("f4")).all() and high == pytest.approx(0.1 + 0.01 * k)

            for _ in range(30):
                tick()
            assert is_tick(30) and shown.slider.value == 0 and shown.play.label == "Pause"
            tick(("character", int(crowd.ids[0])))
            tick(("Pause",))
            assert is_tick(31) and shown.play.label == "Play" and shown.slider.value == 1
            tick()
            assert is_tick(31) and shown.slider.value == 2 and "2 ticks ago" in shown.text.content
            assert f"at ({places[31][0][0]:.3f}, " in shown.text.content
            tick(("Back",))
            assert is_tick(30)
            tick(("Step",), ("Step",), ("Step",))
            assert is_tick(33)
            tick(("ticks ago", 20))
            assert is_tick(15)
            tick(("speed", "0.5x"), ("Pause",))
            assert shown.playing and shown.play.label == "Pause" and shown.shown > 15
            for _ in range(60):
                tick()
            assert shown.shown is None and is_tick(len(places) - 1)
            # What is older than the history is gone.
            tick(("ticks ago", 49))
            oldest = len(places) - 1 - 49
            assert is_tick(oldest)
            tick(("ticks ago", 1199))
            assert is_tick(len(places) - 50)
            tick(("Now",))
            assert is_tick(len(places) - 1) and shown.play.label == "Pause"
            tick(("ticks ago", 7))
            tick(("ticks ago", 0))
            assert is_tick(len(places) - 1)
        assert crowd.journal is None

    def test_the_timeline_of_a_recording(self, recorded):
        recording = replay(recorded)
        recording.seek(20)
        places = recording.members()[1]
        with view(replay(recorded), open_browser=False) as shown:
            id = int(recording.crowd.ids[0])
            shown.stage._ask("character", id)
            shown.stage._ask("tick", 20)
            until(lambda: shown.shown == 20 and "tick 20 of 30" in shown.text.content)
            drawn = np.concatenate([handle.batched_positions for _, handle in shown.stage._groups])
            assert sorted(drawn.tolist()) == sorted(places.astype("f4").tolist())
            assert "displacement (0.05, 0, -0.01)" in shown.text.content
            shown.stage._ask("Step")
            until(lambda: shown.shown == 21)
            shown.stage._ask("Back")
            until(lambda: shown.shown == 20)
            shown.stage._ask("speed", "4x")
            shown.stage._ask("Play")
            until(lambda: shown.shown == 30 and not shown.playing)


class TestPlay:
    @pytest.fixture
    def game(self):
        pytest.importorskip("viser")
        found = Game(room(), (0, 0, 0), open_browser=False)
        yield found
        found.close()

    def ticks(self, game, n):
        for _ in range(n):
            game.tick()

    def test_a_click_walks_there_and_a_wall_stops_it(self, game):
        ray = np.array([(-2.0, 1.0, 5.0), (0.0, 0.0, -1.0)])
        game.stage._ask("ground", ray)
        self.ticks(game, 60)
        assert game.status == "arrived"
        assert game.character.foot_position[:2] == pytest.approx((-2, 1), abs=0.11)
        game.stage._ask("ground", np.array([(3.0, 0.0, 5.0), (0.0, 0.0, -1.0)]))
        self.ticks(game, 200)
        assert game.status.startswith("stopped")
        assert "hits <Actor 1" in game.explained and "hits &lt;Actor 1" in game.text.content
        game.stage._ask("ground with shift", np.array([(3.0, 2.0, 5.0), (0.0, 0.0, -1.0)]))
        self.ticks(game, 1)
        assert game.character.foot_position[:2] == pytest.approx((3, 2))

    def test_buttons_jump_and_crouch(self, game):
        self.ticks(game, 5)
        game.stage._ask("Jump")
        self.ticks(game, 10)
        assert game.character.foot_position[2] > 0.3
        self.ticks(game, 100)
        assert game.character.foot_position[2] == pytest.approx(0, abs=0.02)
        game.stage._ask("Crouch")
        self.ticks(game, 1)
        assert game.character.height == pytest.approx(0.3)
        roof = game.scene.add(Box((1, 1, 0.1)), (0, 0, 1.4))
        game.stage._ask("Crouch")
        self.ticks(game, 1)
        assert game.status == "no room to stand up" and game.character.height == pytest.approx(0.3)
        game.scene.remove(roof)
        game.stage._ask("Crouch")
        self.ticks(game, 1)
        assert game.character.height == pytest.approx(1.0)

    def test_sliders_set_parameters_and_keep_the_feet(self, game):
        self.ticks(game, 5)
        feet = game.character.foot_position
        for name, value in (("radius, m", 0.3), ("height, m", 1.2), ("step offset, m", 0.2),
                            ("slope limit, degrees", 60.0), ("rules", "robust")):
            game.stage._ask(name, value)
        self.ticks(game, 1)
        hero = game.character
        assert (hero.radius, hero.height, hero.step_offset) == (0.3, 1.2, 0.2)
        assert hero.slope_limit == pytest.approx(0.5) and hero.rules != 0
        assert hero.foot_position == pytest.approx(feet, abs=0.02)
        assert "radius=0.3" in game.parameters() and "rules='robust'" in game.parameters()

    def test_a_fall_ends_at_the_start(self, game):
        game.character.foot_position = (0, 0, -2000)
        self.ticks(game, 1)
        assert game.character.foot_position[:2] == pytest.approx((0, 0)) and game.character.foot_position[2] < 0.1

    def test_the_command_plays_a_level(self, tmp_path, capsys):
        (tmp_path / "level.obj").write_text("v -9 -9 1\nv 9 -9 1\nv 0 9 1\nf 1 2 3\n")
        assert main(["play", str(tmp_path / "level.obj"), "--no-browser", "--seconds", "0.1"]) == 0
        assert "http://localhost:" in capsys.readouterr().out
        assert main(["play", str(tmp_path / "none.obj"), "--no-browser"]) == 1


def opened(browser, address, problems):
    page = browser.new_page(viewport={"width": 560, "height": 360})
    page.set_default_timeout(1000 * SECONDS)
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: problems.append(str(e)))
    page.goto(address)
    page.wait_for_function("document.body.innerText.includes('Connected') && document.querySelector('canvas')")
    return page


def colours(page):
    """Number of colours of the canvas."""
    from io import BytesIO

    image = pytest.importorskip("PIL.Image")
    picture = image.open(BytesIO(page.screenshot(clip={"x": 0, "y": 190, "width": 230, "height": 160}))).convert("RGB")
    return len(picture.getcolors(1 << 20))


def test_a_click_in_the_browser_walks_the_character(browser):
    pytest.importorskip("viser")
    game = Game(room(), (0, 0, 0), open_browser=False)
    stopped = threading.Event()

    def play():
        while not stopped.is_set():
            game.run(0.1)

    thread = threading.Thread(target=play)
    thread.start()
    try:
        problems = []
        page = opened(browser, game.address, problems)
        until(lambda: colours(page) > 10)
        start = game.character.foot_position
        end = time.monotonic() + SECONDS
        while np.hypot(*np.subtract(game.character.foot_position, start)[:2]) < 0.3:
            assert time.monotonic() < end
            page.mouse.click(100, 300)
            time.sleep(0.5)
        page.get_by_role("button", name="Jump").dispatch_event("click")
        until(lambda: game.character.foot_position[2] > 0.2)
        assert not problems
        page.close()
    finally:
        stopped.set()
        thread.join()
        game.close()


def test_the_timeline_in_the_browser_moves_the_characters(browser, recorded):
    pytest.importorskip("viser")
    with view(replay(recorded), open_browser=False) as shown:
        problems = []
        page = opened(browser, shown.address, problems)
        until(lambda: colours(page) > 10)
        slider = page.get_by_role("slider").first
        slider.focus()
        page.keyboard.press("End")
        until(lambda: shown.shown == 30)
        page.keyboard.press("ArrowLeft")
        until(lambda: shown.shown == 29)
        page.get_by_role("button", name="Step").dispatch_event("click")
        until(lambda: shown.shown == 30)
        assert not problems
        page.close()


def test_the_timeline_of_a_running_program_in_the_browser(browser):
    """Its buttons stop the picture and bring it back to the present, while the program goes on."""
    pytest.importorskip("viser")
    scene = room()
    crowd = Crowd(scene, [(0, 0, 0.91), (0, 2, 0.91)])
    stopped = threading.Event()
    with view(scene, crowd, open_browser=False) as shown:

        def run():
            while not stopped.wait(1 / 60):
                crowd.move([(0.005, 0, -0.01), (0, 0.005, -0.01)], DT)
                shown.update()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            problems = []
            page = opened(browser, shown.address, problems)
            until(lambda: colours(page) > 10)
            page.get_by_role("button", name="Pause").dispatch_event("click")
            until(lambda: shown.shown is not None)
            before = shown.shown
            updates = shown.updates
            until(lambda: shown.updates > updates + 30 and shown.slider.value >= 30)
            assert shown.shown == before
            page.get_by_role("button", name="Back").dispatch_event("click")
            until(lambda: shown.shown == before - 1)
            page.get_by_role("button", name="Now").dispatch_event("click")
            until(lambda: shown.shown is None and shown.slider.value == 0)
            assert not problems
            page.close()
        finally:
            stopped.set()
            thread.join()
