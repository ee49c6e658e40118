"""The replay page in a real browser: what it holds, draws and asks for, and how it is steered."""

import hashlib
import html
import json
import re
import time

import numpy as np
import pytest
import torch

from mimickit.anim.char_model import CharModel
from mimickit.anim.motion_lib import MotionLib
from mimickit.video.errors import VideoError
from mimickit.video.pages.replay import write_replay
from mimickit.video.snapshot import ActorSpec, Snapshot, copy_poses
from mimickit.video.traces.trace import EnvCast, Trace, TraceHeader, TraceWriter
from tests.conftest import ROOT
from tests.video.browser import Browser, require_browser
from tests.video.films import write_pendulum

HUMANOID = ROOT / "data/assets/humanoid/humanoid.xml"
WEB = ROOT / "mimickit/video/pages/web"
DT = 1 / 30
CUT = 180  # state with which the second episode begins
MESH = """
<mujoco>
  <asset><mesh name="wedge" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/></asset>
  <worldbody><body name="root"><freejoint/><geom type="mesh" mesh="wedge" rgba="0.9 0.2 0.2 1"/></body></worldbody>
</mujoco>
"""


def write_trace(path, actor, poses, *, ghosts=None, cuts=(0,), annotations=None, ending=None):
    """poses and ghosts: of every state, (positions, rotations) of the actor's bodies."""
    writer = TraceWriter(
        path, TraceHeader(DT, "mujoco", (EnvCast(0, (actor,), (len(poses[0][0]),)),), {"samples": 1234})
    )
    for t, pose in enumerate(poses):
        facts = annotations[t] if annotations else {}
        shown = [] if ghosts is None else copy_poses([ghosts[t]])
        writer.write((Snapshot(t * DT, 0, t, copy_poses([pose]), shown, is_cut=t in cuts, annotations=facts),))
    writer.close(ending or {})
    return path


def humanoid_trace(path, clip, num_states, cuts=(0,)):
    """A clip on its character, with its own past as the ghost; walks back to the start with every cut."""
    char = CharModel.from_file(HUMANOID)
    motion = MotionLib(ROOT / f"data/motions/humanoid/humanoid_{clip}.npz", char)
    starts = [max(cut for cut in cuts if cut <= t) for t in range(num_states)]

    def poses(lag):
        times = torch.tensor([max(t - start - lag, 0) * DT for t, start in enumerate(starts)])
        frame = motion.frame(torch.zeros(num_states, dtype=torch.long), times)
        pos, rot = char.forward_kinematics(frame.root_pos, frame.root_rot, frame.joint_rot)
        return list(zip(pos.numpy(), rot.numpy(), strict=True))

    facts = [
        {"episode": starts.index(s) and 1, "episode_time": (t - s) * DT, "episode_return": 0.5 * (t - s), "reward": 0.5}
        for t, s in enumerate(starts)
    ]
    episodes = [{"first_frame": cut, "outcome": "fail", "env_id": 0} for cut in cuts]
    actor = ActorSpec("character", HUMANOID)
    return write_trace(
        path, actor, poses(0), ghosts=poses(6), cuts=cuts, annotations=facts, ending={"episodes": episodes}
    )


@pytest.fixture(scope="module")
def walk(tmp_path_factory):
    return humanoid_trace(tmp_path_factory.mktemp("walk") / "walk.trace", "walk", 301, (0, CUT))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return humanoid_trace(tmp_path_factory.mktemp("run") / "run.trace", "run", 61)


@pytest.fixture(scope="module")
def page(walk):
    return write_replay([walk], walk.with_suffix(".html"))


@pytest.fixture(scope="module")
def both(walk, run):
    labels = ["</script><b>old", "new & fast"]
    return write_replay([walk, run], walk.with_name("both.html"), labels=labels, title="<i>Two</i> runs")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    require_browser()
    browser = Browser(tmp_path_factory.mktemp("browser"), size=(640, 400))
    browser.go_offline()
    yield browser
    browser.close()


DEFAULTS = {"paused": 1, "bare": 0, "ghost": 1, "follow": 1, "apart": 0, "loop": 0, "speed": 1, "camera": "track"}


def show(browser, path, **settings):
    """What is seen of a page when nothing moves any more, (H, W, 3). Settings are handed over in the address."""
    words = "&".join(f"{name}={value}" for name, value in {**DEFAULTS, **settings}.items())
    if browser.evaluate("location.pathname") != path.as_posix():
        browser.open(path, f"#{words}")
        browser.wait_for("document.documentElement.dataset.state !== undefined")
    else:
        browser.evaluate(f"replay.isStale = true; location.hash = '{words}&{time.monotonic()}'")
    return picture(browser)


def picture(browser):
    browser.wait_for("replay.pictures > 0 && !replay.isStale && replay.stage.renderer.getPixelRatio() === 1")
    browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return browser.screenshot().astype(int)


def changed(image, other, threshold=40):
    """How many pixels are clearly different."""
    return int((np.abs(image - other).max(axis=-1) > threshold).sum())


def near(image, color, tolerance=40):
    """How many pixels are of a colour."""
    return int((np.abs(image - np.array(color)).max(axis=-1) < tolerance).sum())


def content_of(path):
    found = re.search(r'id="content">(.*?)</script>', path.read_text(), re.DOTALL)
    return json.loads(found[1])


# ---------------------------------------------------------------------- what the page holds and asks for


def test_ten_seconds_with_a_ghost_are_a_small_page(page, walk):
    assert page.stat().st_size < 800_000
    assert Trace(walk).duration == pytest.approx(10.0)


def test_the_page_opens_from_disk_offline_and_asks_for_nothing(browser, page):
    show(browser, page)
    assert browser.evaluate("document.documentElement.dataset.state") == "ready"
    assert browser.requests[0] == page.as_uri()
    assert not [address for address in browser.requests[1:] if not address.startswith(("data:", "blob:"))]
    assert browser.complaints == []


@pytest.mark.parametrize("is_old", [False, True])
def test_every_pose_is_that_of_the_trace(browser, page, walk, is_old):
    """Also in a browser that can't inflate by itself."""
    if is_old:
        script = browser.send("Page.addScriptToEvaluateOnNewDocument", source="delete window.DecompressionStream")
        browser.open(page, "#paused=1")
        browser.send("Page.removeScriptToEvaluateOnNewDocument", **script)
        browser.wait_for("document.documentElement.dataset.state === 'ready'")
    else:
        show(browser, page)
    assert (browser.evaluate("typeof DecompressionStream") == "undefined") is is_old
    pos, rot, facts = browser.evaluate("""(() => {
        const [run] = replay.runs;
        return [[...run.pos].map((step) => step / run.posSteps), [...run.rot].map((step) => step / run.rotSteps),
                [5, 299].map((state) => run.factsAt(state * run.dt))];
    })()""")
    states = [moment[0] for moment in Trace(walk).states()]
    expected = np.stack([[*s.poses[0][0], *s.ghosts[0][0]] for s in states])
    np.testing.assert_allclose(np.reshape(pos, expected.shape), expected, atol=0.6e-4)
    expected = np.stack([[*s.poses[0][1], *s.ghosts[0][1]] for s in states])
    found = np.reshape(rot, expected.shape)
    found = found * np.sign(np.sum(found * expected, axis=-1, keepdims=True))
    np.testing.assert_allclose(found, expected, atol=0.6e-4)
    for index, noted in zip((5, 299), facts, strict=True):
        assert dict(noted) == pytest.approx(states[index].annotations)


def test_between_two_states_bodies_glide_and_turn_and_across_a_cut_they_do_not(browser, page, walk):
    trace = Trace(walk)
    shin = 10
    rots = np.stack([moment[0].poses[0][1][shin] for moment in trace.states(0, CUT)])
    fast = int(np.argmin(np.abs(np.sum(rots[1:] * rots[:-1], axis=-1))))  # where it swings fastest

    def drawn(state):
        """Position and rotation of a body that is on the page at a time, in states."""
        show(browser, page, t=state * DT, bare=1)
        body = f"replay.stage.casts[0].bodies[{shin}]"
        return [np.array(browser.evaluate(f"{body}.{part}.toArray()")) for part in ("position", "quaternion")]

    (pos0, rot0), (pos1, rot1) = ([part[shin] for part in trace.state(i)[0].poses[0]] for i in (fast, fast + 1))
    pos, rot = drawn(fast + 0.25)
    np.testing.assert_allclose(pos, 0.75 * pos0 + 0.25 * pos1, atol=2e-4)
    rot1 = rot1 * np.sign(rot0 @ rot1)
    angle = np.arccos(rot0 @ rot1)
    assert angle > 0.05
    slerp = (np.sin(0.75 * angle) * rot0 + np.sin(0.25 * angle) * rot1) / np.sin(angle)
    np.testing.assert_allclose(rot * np.sign(rot @ slerp), slerp, atol=2e-4)
    before, after = (trace.state(i)[0].poses[0][0][shin] for i in (CUT - 1, CUT))
    assert np.linalg.norm(after - before) > 1.0
    np.testing.assert_allclose(drawn(CUT - 0.1)[0], before, atol=2e-4)
    np.testing.assert_allclose(drawn(CUT)[0], after, atol=2e-4)


def test_the_bundle_is_built_from_the_sources_beside_it():
    sources = sorted((WEB / "src").glob("*.js"), key=lambda path: path.name)
    total = hashlib.sha256(b"".join(path.read_bytes() for path in [WEB / "package-lock.json", *sources])).hexdigest()
    bundle = (WEB / "replay.bundle.js").read_text()
    assert bundle.startswith(f"/* sources {total} */"), f"stale: run `npm ci && npm run build` in {WEB}"
    assert "</script" not in bundle.lower()
    packages = json.loads((WEB / "package.json").read_text())["devDependencies"]
    for name in ("three", "fflate"):
        assert f"{name} {packages[name]}\n" in (WEB / "LICENSES.txt").read_text()


# ---------------------------------------------------------------------- what is drawn


def test_the_character_stands_in_the_middle_lit_and_in_colour(browser, page):
    image = show(browser, page, t=2, bare=1)
    middle = image[:, 220:420]
    assert len(np.unique(middle.reshape(-1, 3), axis=0)) > 1000
    assert near(middle, (215, 127, 46)) > 200  # its right side is orange, its left teal
    assert near(middle, (30, 125, 125)) > 150
    assert near(image[:60], (160, 190, 228), 45) > 0.9 * 60 * 640  # the sky
    rows = np.flatnonzero((np.ptp(middle, axis=-1) > 80).any(axis=1))
    assert 80 < rows[0] < 150  # shoulders
    assert 270 < rows[-1] < 330  # feet


def test_it_plays(browser, page):
    show(browser, page, t=0)
    browser.press(" ")
    browser.wait_for("replay.player.time > 0.1")
    first = browser.screenshot().astype(int)
    browser.wait_for(f"replay.player.time > {browser.evaluate('replay.player.time')} + 0.3")
    assert changed(first, browser.screenshot().astype(int)) > 200
    browser.press(" ")
    assert browser.evaluate("replay.player.isPlaying") is False


def test_scrubbing_and_the_address_change_the_moment(browser, page):
    first = show(browser, page, t=1)
    assert changed(first, show(browser, page, t=1.5)) > 200
    browser.evaluate("""(() => {
        const scrub = document.getElementById('scrub');
        scrub.value = 1;
        scrub.dispatchEvent(new Event('input'));
    })()""")
    assert changed(first, picture(browser)) < 50
    assert browser.evaluate("document.getElementById('clock').textContent") == "1.00 / 10.00 s"


def test_the_ghost_can_be_hidden(browser, page):
    shown = show(browser, page, t=1, bare=1)
    browser.press("g")
    assert changed(shown, picture(browser), 25) > 400
    assert browser.evaluate("document.getElementById('ghost').getAttribute('aria-pressed')") == "false"


def test_the_camera_follows_turns_and_lets_go(browser, page):
    """The character walks some metres and stays in the middle, until the camera stays behind."""

    def column():
        """In which the character stands, None if it is out of sight."""
        columns = np.nonzero(np.ptp(picture(browser), axis=-1) > 90)[1]
        return np.median(columns) if len(columns) > 100 else None

    camera = "replay.stage.camera.position.toArray()"
    show(browser, page, t=0, bare=1, ghost=0)
    browser.evaluate("replay.seek(5)")
    assert abs(column() - 320) < 40
    before = browser.evaluate(camera)
    browser.drag((320, 200), (250, 200))
    browser.wait_for("replay.settings.camera === null")
    picture(browser)
    assert np.linalg.norm(np.subtract(browser.evaluate(camera), before)) > 0.5
    show(browser, page, t=0, bare=1, ghost=0, follow=0, camera="side")
    browser.evaluate("replay.seek(5)")
    assert column() is None


def test_every_preset_is_a_view_of_its_own(browser, page):
    images = [show(browser, page, t=2, bare=1, camera=name) for name in ("side", "front", "top", "first_person")]
    for i, image in enumerate(images):
        for other in images[:i]:
            assert changed(image, other, 20) > 0.05 * 640 * 400


# ---------------------------------------------------------------------- several runs, keys, marks


def test_several_runs_have_colours_names_and_ends_of_their_own(browser, both):
    image = show(browser, both, t=1)
    assert near(image, (210, 125, 55)) > 100
    assert near(image, (60, 150, 175)) > 100
    names = browser.evaluate("[...document.querySelectorAll('.run .head button')].map((e) => e.textContent)")
    assert names == ["</script><b>old", "new & fast"]
    assert browser.evaluate("document.querySelector('h1').textContent") == "<i>Two</i> runs"
    show(browser, both, t=9)
    ended = "[...document.querySelectorAll('.run')].map((e) => e.classList.contains('is-ended'))"
    assert browser.evaluate(ended) == [False, True]


def test_runs_stand_side_by_side_or_in_one_place_and_can_be_hidden(browser, both):
    show(browser, both, t=0, bare=1)
    offsets = "replay.stage.casts.map((cast) => cast.group.position.y)"
    assert browser.evaluate(offsets) == [0, 0]
    browser.press("b")
    apart = picture(browser)
    assert np.diff(browser.evaluate(offsets))[0] > 1.0
    browser.evaluate("document.querySelectorAll('.run input')[1].click()")
    assert near(picture(browser), (60, 150, 175)) < 0.1 * near(apart, (60, 150, 175))
    browser.evaluate("document.querySelectorAll('.run input')[1].click()")


def test_every_control_has_a_name(browser, both):
    show(browser, both)
    nodes = browser.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "radio", "slider", "combobox", "checkbox", "image"}
    controls = [node for node in nodes if node.get("role", {}).get("value") in roles and not node["ignored"]]
    assert len(controls) > 15
    assert [node for node in controls if not node["name"]["value"].strip()] == []


def test_keys_marks_and_facts(browser, page):
    show(browser, page, t=0)
    assert browser.evaluate("document.querySelectorAll('#marks .start').length") == 1
    for key, moment in (("]", CUT * DT), ("ArrowLeft", (CUT - 1) * DT), ("End", 10.0), ("[", CUT * DT), ("Home", 0.0)):
        browser.press(key)
        assert browser.evaluate("replay.player.time") == pytest.approx(moment, abs=1e-6), key
    for key, speed in (("-", 0.5), ("-", 0.25), ("+", 0.5)):
        browser.press(key)
        assert browser.evaluate("replay.player.speed") == speed
    browser.press("]")
    picture(browser)
    facts = browser.evaluate("document.querySelector('.run dl').innerText").split("\n")
    facts = dict(zip(facts[::2], facts[1::2], strict=True))
    assert facts == {"episode": "1", "time": "0.00 s", "return": "0", "reward": "0.500", "outcome": "fail"}


def test_meshes_are_drawn_where_they_are(browser, tmp_path):
    file = tmp_path / "wedge.xml"
    file.write_text(MESH)
    trace = write_trace(
        tmp_path / "wedge.trace", ActorSpec("wedge", file), [(np.array([[0, 0, 0.5]]), np.array([[0, 0, 0, 1.0]]))]
    )
    show(browser, write_replay([trace], tmp_path / "wedge.html"))
    low, high = browser.evaluate("""(() => {
        const [mesh] = replay.stage.casts[0].bodies[0].children;
        const points = mesh.geometry.attributes.position;
        const corners = [...Array(points.count).keys()].map((i) => mesh.position.clone().fromBufferAttribute(points, i)
            .applyMatrix4(mesh.matrixWorld).toArray());
        return [Math.min, Math.max].map((f) => [0, 1, 2].map((k) => f(...corners.map((corner) => corner[k]))));
    })()""")
    np.testing.assert_allclose(low, [0, 0, 0.5], atol=1e-3)
    np.testing.assert_allclose(high, [1, 1, 1.5], atol=1e-3)


def test_without_webgl_the_page_says_so(tmp_path, page):
    require_browser()
    browser = Browser(tmp_path, has_webgl=False)
    browser.open(page)
    browser.wait_for("document.documentElement.dataset.state === 'failed'")
    assert "WebGL 2" in browser.evaluate("document.getElementById('message').innerText")
    browser.close()


# ---------------------------------------------------------------------- writing


def test_what_is_too_much_for_a_page_is_thinned_with_a_note_and_keeps_its_cuts(walk, tmp_path):
    path = write_replay([walk], tmp_path / "thin.html", max_bytes=50_000)
    (thin,) = content_of(path)["runs"]
    stride = round(thin["dt"] / DT)
    assert stride > 1
    assert thin["num_states"] == -(-301 // stride)
    assert thin["cuts"] == [0, -(-CUT // stride)]
    assert f"One state in {stride} of walk.trace" in thin["notes"][0]


def test_a_trace_that_was_cut_short_is_shown_with_a_note(walk, tmp_path):
    part = tmp_path / "walk.trace.part"
    part.write_bytes(walk.read_bytes()[:-2000])
    (run,) = content_of(write_replay([part], tmp_path / "part.html"))["runs"]
    assert 64 <= run["num_states"] < 301
    assert run["label"] == "walk"
    assert "cut short" in run["notes"][0]


def test_every_environment_is_a_run(tmp_path):
    actor = ActorSpec("pendulum", write_pendulum(tmp_path))
    pos, rot = np.zeros((3, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (3, 1))
    writer = TraceWriter(
        tmp_path / "a.trace", TraceHeader(DT, "mujoco", tuple(EnvCast(e, (actor,), (3,)) for e in (2, 5)))
    )
    writer.write(tuple(Snapshot(0.0, e, 0, copy_poses([(pos + e, rot)])) for e in (2, 5)))
    writer.close({})
    runs = content_of(write_replay([tmp_path / "a.trace"], tmp_path / "a.html"))["runs"]
    assert [run["label"] for run in runs] == ["a env 2", "a env 5"]
    assert runs[0]["color"] != runs[1]["color"]


def test_mistakes_are_named_and_leave_what_was_there(walk, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    (tmp_path / "no.trace").write_text("no trace")
    for traces, labels, words in (
        ([], None, "at least one trace"),
        ([walk], ["a", "b"], "expected 1 labels"),
        ([tmp_path / "no.trace"], None, "no.trace"),
    ):
        with pytest.raises(VideoError, match=words):
            write_replay(traces, path, labels=labels)
    with pytest.raises(VideoError, match="nowhere"):
        write_replay([walk], tmp_path / "nowhere/page.html")
    assert path.read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["no.trace", "page.html"]
    write_replay([walk], path, title="a < b")
    assert html.escape("a < b") in path.read_text()
