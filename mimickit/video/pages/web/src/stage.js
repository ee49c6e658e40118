// The scene: ground, sky, light as in the films, and the runs' bodies in it.
import {
  AmbientLight, BackSide, ColorManagement, DirectionalLight, Group, LinearSRGBColorSpace, Mesh, MeshLambertMaterial,
  PCFShadowMap, PerspectiveCamera, PlaneGeometry, Quaternion, Scene, ShaderMaterial, SphereGeometry, Vector3,
  WebGLRenderer,
} from 'three';
import {ShapeFactory} from './shapes.js';

const FAR = 400; // m
const SHADOW_REACH = 2.6; // m around what is followed
const SHADOW_STEP = 0.25; // m: a shadow map that moved with every frame would make the shadow's edge crawl
const LIGHT_DISTANCE = 30; // m
const MAX_REACH = 40; // m
const MIN_RATIO = 0.6; // pixels of the picture by pixels of the page, where drawing is slow
const SLOW = 0.05; // s between two pictures

export class Stage {
  constructor(canvas, page) {
    ColorManagement.enabled = false; // colours are meant as they are written, as in the films
    this.renderer = new WebGLRenderer({canvas, antialias: true, powerPreference: 'high-performance'});
    this.renderer.outputColorSpace = LinearSRGBColorSpace;
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = PCFShadowMap;
    this.scene = new Scene();
    this.camera = new PerspectiveCamera(45, 1, 0.05, FAR);
    this.camera.up.set(0, 0, 1);
    this.scene.add(this.camera);
    this.period = 2 * page.look.cell;
    this.addLights(page.look);
    this.addGround(page.look);
    this.addSky(page.look);
    const shapes = new ShapeFactory(page.meshes);
    this.casts = page.runs.map((run) => new Cast(run, shapes));
    this.casts.forEach((cast) => this.scene.add(cast.group));
    this.fullRatio = 1;
    this.slowness = 0;
  }

  addLights(look) {
    // a surface returns what falls on it by its colour: three.js divides by pi, MuJoCo doesn't
    const lit = (light, color) => {
      light.color.setRGB(...color);
      light.intensity = Math.PI;
      this.scene.add(light);
      return light;
    };
    lit(new AmbientLight(), look.ambient);
    this.key = lit(new DirectionalLight(), look.key);
    this.keyDirection = new Vector3(...look.key_direction).normalize();
    this.key.castShadow = true;
    this.key.shadow.mapSize.set(2048, 2048);
    this.key.shadow.radius = 2.5;
    this.key.shadow.bias = -0.0006;
    this.key.shadow.normalBias = 0.012;
    this.key.shadow.camera.near = 1;
    this.key.shadow.camera.far = 2 * LIGHT_DISTANCE;
    this.scene.add(this.key.target);
    const rim = lit(new DirectionalLight(), look.rim);
    rim.position.set(...look.rim_direction).negate();
    const fill = lit(new DirectionalLight(), [look.fill, look.fill, look.fill]); // from the camera
    fill.position.set(0, 0, 0);
    fill.target.position.set(0, 0, -1);
    this.camera.add(fill, fill.target);
  }

  addGround(look) {
    const vector = (color) => `vec3(${color.map((part) => part.toFixed(5)).join(', ')})`;
    const material = new MeshLambertMaterial();
    material.onBeforeCompile = (shader) => {
      shader.vertexShader = `varying vec2 vGround;\n${shader.vertexShader}`
        .replace('#include <begin_vertex>', '#include <begin_vertex>\n  vGround = position.xy;');
      shader.fragmentShader = `varying vec2 vGround;\n${CELLS}\n${shader.fragmentShader}`
        .replace('#include <color_fragment>', `
          vec2 place = vGround / ${look.cell.toFixed(5)};
          vec2 blur = fwidth(place) + 1e-4;
          diffuseColor.rgb = mix(${vector(look.floor)}, ${vector(look.floor_other)}, cells(place, blur));
          diffuseColor.rgb = mix(diffuseColor.rgb, ${vector(look.line)}, lines(place, blur));`)
        .replace('#include <opaque_fragment>', `
          float far = smoothstep(12.0, 110.0, length(vViewPosition));
          outgoingLight = mix(outgoingLight, ${vector(look.distant_floor)}, far);
          #include <opaque_fragment>`);
    };
    this.ground = new Mesh(new PlaneGeometry(2 * FAR, 2 * FAR), material);
    this.ground.receiveShadow = true;
    this.scene.add(this.ground);
  }

  addSky(look) {
    const color = (value) => ({value: new Vector3(...value)});
    const material = new ShaderMaterial({
      side: BackSide, depthWrite: false, vertexShader: SKY_VERTEX, fragmentShader: SKY_FRAGMENT,
      uniforms: {haze: color(look.haze), zenith: color(look.zenith), horizon: color(look.distant_floor)},
    });
    this.sky = new Mesh(new SphereGeometry(FAR / 2, 48, 32), material);
    this.sky.renderOrder = -1;
    this.sky.frustumCulled = false;
    this.scene.add(this.sky);
  }

  // Put everything where it is at a time; center (Vector3) is what is followed.
  place(time, showsGhosts, center) {
    this.casts.forEach((cast) => cast.place(time, showsGhosts));
    let reach = SHADOW_REACH;
    for (const {group, root} of this.casts.filter((cast) => cast.group.visible)) {
      const across = Math.hypot(group.position.x + root[0] - center.x, group.position.y + root[1] - center.y);
      reach = Math.max(reach, Math.min(across, MAX_REACH) + 1.6);
    }
    reach = Math.ceil(reach / 0.8) * 0.8;
    const snap = (value) => Math.round(value / SHADOW_STEP) * SHADOW_STEP;
    const {target, shadow, position} = this.key;
    target.position.set(snap(center.x), snap(center.y), 0.6);
    position.copy(target.position).addScaledVector(this.keyDirection, -LIGHT_DISTANCE);
    if (shadow.camera.right !== reach) {
      Object.assign(shadow.camera, {left: -reach, right: reach, bottom: -reach, top: reach});
      shadow.camera.updateProjectionMatrix();
    }
  }

  // Fit the picture to the page.
  resize(width, height, ratio) {
    this.fullRatio = Math.min(ratio, 2);
    this.renderer.setPixelRatio(this.fullRatio);
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / Math.max(height, 1);
    this.camera.updateProjectionMatrix();
  }

  render() {
    const {x, y, z} = this.camera.position;
    this.ground.position.set(Math.round(x / this.period) * this.period, Math.round(y / this.period) * this.period, 0);
    this.sky.position.set(x, y, z);
    this.renderer.render(this.scene, this.camera);
  }

  // Draw with fewer pixels where drawing is slow; interval (s) is the time since the picture before.
  ease(interval) {
    this.slowness = 0.8 * this.slowness + 0.2 * Math.min(interval, 0.3);
    const ratio = this.renderer.getPixelRatio();
    if (this.slowness > SLOW && ratio > MIN_RATIO) {
      this.renderer.setPixelRatio(Math.max(0.8 * ratio, MIN_RATIO));
      this.slowness = 0;
    }
  }

  // Draw with all pixels, now that nothing moves; says whether that changes the picture.
  sharpen() {
    this.slowness = 0;
    if (this.renderer.getPixelRatio() === this.fullRatio) {
      return false;
    }
    this.renderer.setPixelRatio(this.fullRatio);
    return true;
  }
}

// The bodies of one run.
class Cast {
  constructor(run, shapes) {
    this.run = run;
    this.group = new Group();
    this.root = [0, 0, 0];
    this.bodies = shapes.bodies(run.figure);
    this.bodies.filter(Boolean).forEach((body) => this.group.add(body));
    this.hidden = null; // a body that isn't shown, because the camera is in it
  }

  place(time, showsGhosts) {
    const at = this.run.around(time);
    const hasGhost = showsGhosts && this.run.hasGhost[at.low] === 1;
    const place = [0, 0, 0];
    this.bodies.forEach((body, index) => {
      if (body === null) {
        return;
      }
      body.visible = index !== this.hidden && (index < this.run.figure.solid || hasGhost);
      if (body.visible) {
        body.position.set(...this.run.position(index, at, place));
        this.run.rotation(index, at, body.quaternion, SPARE);
      }
    });
    this.run.position(0, at, this.root);
  }
}

const SPARE = new Quaternion();

// Both are averaged over a pixel, so that they neither flicker nor crawl.
const CELLS = `
float cells(vec2 p, vec2 w) {
  vec2 i = 2.0 * (abs(fract((p - 0.5 * w) * 0.5) - 0.5) - abs(fract((p + 0.5 * w) * 0.5) - 0.5)) / w;
  return 0.5 - 0.5 * i.x * i.y;
}
float lines(vec2 p, vec2 w) {
  const float width = 0.022;
  vec2 a = p + 0.5 * width + 0.5 * w;
  vec2 b = a - w;
  vec2 i = (floor(a) + min(fract(a) / width, 1.0) - floor(b) - min(fract(b) / width, 1.0)) * width / w;
  return 1.0 - (1.0 - i.x) * (1.0 - i.y);
}`;

const SKY_VERTEX = `
varying vec3 vDirection;
void main() {
  vDirection = position;
  gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
}`;

const SKY_FRAGMENT = `
varying vec3 vDirection;
uniform vec3 haze;
uniform vec3 zenith;
uniform vec3 horizon;
void main() {
  float rise = clamp(normalize(vDirection).z, 0.0, 1.0);
  vec3 color = haze + (zenith - haze) * pow(rise, 0.65);
  color = horizon + (color - horizon) * pow(clamp(rise / 0.045, 0.0, 1.0), 0.8);
  float noise = fract(sin(dot(gl_FragCoord.xy, vec2(12.9898, 78.233))) * 43758.5453);
  gl_FragColor = vec4(color + (noise - 0.5) / 255.0, 1.0);
}`;
