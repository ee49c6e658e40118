// Bodies from the shapes of the character files, as MuJoCo means their sizes.
import {
  BoxGeometry, BufferAttribute, BufferGeometry, CapsuleGeometry, CylinderGeometry, DoubleSide, FrontSide, Group,
  LessEqualDepth, Mesh, MeshPhongMaterial, PlaneGeometry, Quaternion, SphereGeometry, Vector3,
} from 'three';
import {toCreasedNormals} from 'three/examples/jsm/utils/BufferGeometryUtils.js';

const QUARTER = Math.PI / 2;
const CREASE = Math.PI / 5; // between two faces of a mesh, above which their edge is sharp
const DEPTH_FIRST = 1; // order in which translucent things are drawn: first where they are, then their colour,
const COLOR_LAST = 2; // so that only the nearest surface shows and not what is inside

const GHOST_OPACITY = 0.42; // of its one visible surface; in a film several lie over each other
const GHOST_GLOW = 0.3; // light of its own: its colour is a sign

const GHOST_BEHIND = 0.03; // m that a ghost is counted as farther away: it doesn't cover an actor in its very place

const MAKERS = {
  plane: ([x, y]) => new PlaneGeometry(2 * x, 2 * y),
  sphere: ([radius]) => new SphereGeometry(radius, 26, 18),
  ellipsoid: ([x, y, z]) => new SphereGeometry(1, 26, 18).scale(x, y, z),
  capsule: ([radius, half]) => new CapsuleGeometry(radius, 2 * half, 7, 24, 1).rotateX(QUARTER),
  cylinder: ([radius, half]) => new CylinderGeometry(radius, radius, 2 * half, 32).rotateX(QUARTER),
  box: ([x, y, z]) => new BoxGeometry(2 * x, 2 * y, 2 * z),
};

export class ShapeFactory {
  constructor(meshes) {
    this.meshes = meshes;
    this.geometries = new Map();
    this.materials = new Map();
  }

  // A group for every body of a run: those of actors, then those of ghosts; null for one without shape.
  bodies({geoms, solid}) {
    const bodies = new Array(2 * solid).fill(null);
    for (const geom of geoms) {
      bodies[geom.body] ??= new Group();
      this.parts(geom, geom.body >= solid).forEach((part) => bodies[geom.body].add(part));
    }
    return bodies;
  }

  parts(geom, isGhost) {
    const geometry = this.geometry(geom);
    const isClear = geom.rgba[3] < 1;
    const parts = [new Mesh(geometry, this.material(geom, isGhost, false))];
    parts[0].renderOrder = isClear ? COLOR_LAST : 0;
    parts[0].castShadow = !isGhost && !isClear;
    parts[0].receiveShadow = !isGhost;
    if (isClear) {
      parts.push(new Mesh(geometry, this.material(geom, isGhost, true)));
      parts[1].renderOrder = DEPTH_FIRST;
    }
    for (const part of parts) {
      part.matrixAutoUpdate = false;
      part.matrix.compose(new Vector3(...geom.pos), new Quaternion(...geom.rot), new Vector3(1, 1, 1));
    }
    return parts;
  }

  geometry({shape, size, mesh}) {
    const key = shape === 'mesh' ? `mesh ${mesh}` : `${shape} ${size}`;
    if (!this.geometries.has(key)) {
      this.geometries.set(key, shape === 'mesh' ? meshGeometry(this.meshes[mesh]) : MAKERS[shape](size));
    }
    return this.geometries.get(key);
  }

  material({shape, rgba}, isGhost, isDepthOnly) {
    const side = shape === 'plane' || shape === 'mesh' ? DoubleSide : FrontSide; // mirrored meshes are inside out
    const key = `${rgba} ${isGhost} ${isDepthOnly} ${side}`;
    if (!this.materials.has(key)) {
      const isClear = rgba[3] < 1;
      const material = new MeshPhongMaterial({
        side, transparent: isClear, opacity: isGhost ? GHOST_OPACITY : rgba[3], depthWrite: !isClear || isDepthOnly, depthFunc: LessEqualDepth,
        colorWrite: !isDepthOnly, specular: 0x181818, shininess: 50,
      });
      material.color.setRGB(rgba[0], rgba[1], rgba[2]);
      material.emissive.copy(material.color).multiplyScalar(isGhost ? GHOST_GLOW : 0);
      if (isGhost) {
        material.onBeforeCompile = standBack;
      }
      this.materials.set(key, material);
    }
    return this.materials.get(key);
  }
}

function standBack(shader) {
  shader.vertexShader = shader.vertexShader.replace('#include <project_vertex>', `#include <project_vertex>
    vec4 behind = projectionMatrix * (mvPosition - vec4(0.0, 0.0, ${GHOST_BEHIND.toFixed(3)}, 0.0));
    gl_Position.z = behind.z / behind.w * gl_Position.w;`);
}

function meshGeometry({index, position}) {
  const geometry = new BufferGeometry();
  geometry.setAttribute('position', new BufferAttribute(position, 3));
  geometry.setIndex(new BufferAttribute(index, 1));
  return toCreasedNormals(geometry, CREASE);
}
