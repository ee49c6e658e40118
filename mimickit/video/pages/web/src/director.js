// The camera: presets, the hand on the mouse, and following.
import {Quaternion, Vector3} from 'three';
import {OrbitControls} from 'three/examples/jsm/controls/OrbitControls.js';

export const CAMERAS = ['track', 'side', 'front', 'top', 'orbit', 'first_person'];

const radians = (degrees) => (degrees * Math.PI) / 180;
const FOV = 45; // degrees, vertical
const EYES_FOV = 75;
const FILL = 0.5; // share of the picture's height that a standing character takes
const AIM_HEIGHT = 0.48; // of its height: what the camera looks at; a little low, because controls cover the lower edge
const CALM_BAND = 0.6; // of its height: up and down within it is followed by half
const WINDOW = 0.4; // s before and after, over which the followed point is averaged
const SAMPLES = 8; // before and after
const MARGIN = 1.25; // room around runs that are apart
const MAX_DISTANCE = 120; // m
const FADE = 0.8; // s in which a run that has ended is let go
const MIN_EYE_HEIGHT = 0.05; // m
const TURNS = 2.0; // of the orbit camera: speed in OrbitControls' unit, one turn in 30 s
// of the eye, as seen from the character: degrees from where it faces, or (fromWorld) from +x, and above the horizon
const ANGLES = {
  track: {azimuth: -62, elevation: 11, fromWorld: true},
  orbit: {azimuth: -62, elevation: 14, fromWorld: true},
  side: {azimuth: -90, elevation: 5},
  front: {azimuth: 0, elevation: 8},
  top: {azimuth: 180, elevation: 89},
};

export class Director {
  constructor(stage, canvas) {
    this.stage = stage;
    this.camera = stage.camera;
    this.runs = stage.casts.map((cast) => cast.run);
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.enableDamping = true;
    this.controls.dampingFactor = 0.12;
    this.controls.minDistance = 0.3;
    this.controls.maxDistance = MAX_DISTANCE;
    this.controls.maxPolarAngle = radians(100);
    this.controls.autoRotateSpeed = TURNS;
    this.follows = true;
    this.focus = null; // index of the run that is followed, null for all
    this.center = new Vector3(); // what is followed
    this.last = new Vector3();
    this.preset = 'track';
    this.isPreset = true; // it stands as the preset says, not where a hand has put it
  }

  get isInside() {
    return this.preset === 'first_person';
  }

  // The runs that are followed at a time: index, weight and place of each.
  followed(time) {
    const seen = this.stage.casts.map((cast, index) => index).filter((index) => this.stage.casts[index].group.visible);
    const chosen = seen.includes(this.focus) ? [this.focus] : seen;
    return chosen.map((index) => {
      const place = calmPlace(this.runs[index], time).add(this.stage.casts[index].group.position);
      const over = chosen.length > 1 ? Math.max(time - this.runs[index].duration, 0) : 0;
      return {index, place, weight: Math.max(1 - over / FADE, 1e-6)};
    });
  }

  // Take note of what is followed; the camera goes along with it.
  follow(time) {
    const followed = this.followed(time);
    if (followed.length > 0) {
      const total = followed.reduce((sum, {weight}) => sum + weight, 0);
      this.center.set(0, 0, 0);
      followed.forEach(({place, weight}) => this.center.addScaledVector(place, weight / total));
    }
    if (this.isInside) {
      this.lookThroughEyes(time);
    } else if (this.follows) {
      this.move(new Vector3().subVectors(this.center, this.last));
      if (followed.length > 1 && this.isPreset) {
        this.stand(this.arm().normalize(), followed);
      }
    }
    this.last.copy(this.center);
  }

  move(shift) {
    this.camera.position.add(shift);
    this.controls.target.add(shift);
  }

  // From the target to the camera.
  arm() {
    return new Vector3().subVectors(this.camera.position, this.controls.target);
  }

  // Stand in a direction from the target, as far away as it takes to have everything in view.
  stand(direction, followed) {
    this.camera.position.copy(this.controls.target).addScaledVector(direction, this.distance(followed));
  }

  setFollows(follows) {
    this.follows = follows;
    if (follows && !this.isInside) {
      this.move(new Vector3().subVectors(this.center, this.controls.target));
    }
  }

  // Stand where a preset says at a time.
  use(preset, time) {
    this.preset = CAMERAS.includes(preset) ? preset : 'track';
    this.isPreset = true;
    this.controls.enabled = !this.isInside;
    this.controls.autoRotate = this.preset === 'orbit';
    this.camera.fov = this.isInside ? EYES_FOV : FOV;
    this.camera.updateProjectionMatrix();
    this.hideEyes();
    this.follow(time);
    if (!this.isInside) {
      const {azimuth, elevation, fromWorld} = ANGLES[this.preset];
      const turned = radians(azimuth) + (fromWorld ? 0 : heading(this.subject(time), time));
      const rise = radians(elevation);
      const direction = [Math.cos(rise) * Math.cos(turned), Math.cos(rise) * Math.sin(turned), Math.sin(rise)];
      this.controls.target.copy(this.center);
      this.stand(new Vector3(...direction), this.followed(time));
      this.controls.update();
    }
  }

  // The hand has taken over.
  letGo() {
    this.isPreset = false;
    this.controls.autoRotate = false;
  }

  // From which everything is in view (m).
  distance(followed) {
    const tan = Math.tan(radians(FOV) / 2);
    const tanAcross = tan * Math.min(this.camera.aspect, 2);
    let distance = 0.5;
    for (const {index, place, weight} of followed) {
      const {height} = this.runs[index].figure;
      const aside = MARGIN * weight * place.distanceTo(this.center);
      distance = Math.max(distance, (0.5 * height) / FILL / tan, (0.6 * height + aside) / tanAcross);
    }
    return Math.min(distance, MAX_DISTANCE);
  }

  // The run that counts where only one can.
  subject(time) {
    return this.runs[this.followed(time)[0]?.index ?? 0];
  }

  hideEyes() {
    this.stage.casts.forEach((cast) => (cast.hidden = null));
  }

  lookThroughEyes(time) {
    const run = this.subject(time);
    const cast = this.stage.casts[this.runs.indexOf(run)];
    const {head} = run.figure;
    const at = run.around(time);
    const turn = run.rotation(head, at, new Quaternion(), new Quaternion());
    const ahead = new Vector3(1, 0, 0).applyQuaternion(turn);
    const eyes = new Vector3(...run.position(head, at, [0, 0, 0])).add(cast.group.position);
    this.hideEyes();
    cast.hidden = head;
    this.camera.position.copy(eyes).addScaledVector(ahead, 0.05);
    this.camera.up.set(0, 0, 1).applyQuaternion(turn);
    this.camera.lookAt(eyes.addScaledVector(ahead, 2));
    this.camera.up.set(0, 0, 1);
  }

  // Let the hand's movement run out; says whether the camera has moved.
  update(seconds) {
    if (this.isInside) {
      return false;
    }
    const moved = this.controls.update(seconds);
    this.camera.position.z = Math.max(this.camera.position.z, MIN_EYE_HEIGHT);
    return moved;
  }
}

// Where a character is on its way, without its sway: averaged over a moment, but never across episodes. What lies
// before and after weighs the same, so there is no lag, and the result depends on nothing but the time.
function calmPlace(run, time) {
  const now = Math.min(time, run.duration);
  const [first, last] = run.boundsOf(run.episodeAt(now));
  const window = Math.min(WINDOW, now - first * run.dt, last * run.dt - now);
  const sum = new Vector3();
  const place = [0, 0, 0];
  let total = 0;
  for (let k = -SAMPLES; k <= SAMPLES; k += 1) {
    const weight = Math.exp(-2 * (k / SAMPLES) ** 2);
    run.position(0, run.around(now + (k / SAMPLES) * Math.max(window, 0)), place);
    sum.addScaledVector(new Vector3(...place), weight);
    total += weight;
  }
  sum.divideScalar(total);
  const {height, root_height: rootHeight} = run.figure;
  const rise = sum.z - rootHeight;
  const band = CALM_BAND * height;
  return sum.setZ(AIM_HEIGHT * height + rise - 0.5 * Math.min(Math.max(rise, -band), band));
}

// Where a character faces (rad from +x): its way over a second, or where its root points if it stands.
function heading(run, time) {
  const now = Math.min(time, run.duration);
  const [first, last] = run.boundsOf(run.episodeAt(now));
  const from = run.position(0, run.around(Math.max(now - 0.5, first * run.dt)), [0, 0, 0]);
  const to = run.position(0, run.around(Math.min(now + 0.5, last * run.dt)), [0, 0, 0]);
  if (Math.hypot(to[0] - from[0], to[1] - from[1]) > 0.25) {
    return Math.atan2(to[1] - from[1], to[0] - from[0]);
  }
  const turn = run.rotation(0, run.around(now), new Quaternion(), new Quaternion());
  const ahead = new Vector3(1, 0, 0).applyQuaternion(turn);
  return Math.atan2(ahead.y, ahead.x);
}
