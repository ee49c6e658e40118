// Starts the page: reads it, and draws when there is something new to see.
import {Vector3} from 'three';
import {readPage} from './data.js';
import {CAMERAS, Director} from './director.js';
import {Panel} from './panel.js';
import {Player} from './player.js';
import {Stage} from './stage.js';

const APART = 0.85; // of the tallest character's height: between runs side by side
const LONGEST = 0.5; // s of real time that pass between two pictures; after a pause of the browser no more
const REST = 0.4; // s without movement, after which the picture is drawn with all pixels
const NO_WEBGL = `This page draws in three dimensions with WebGL 2, which is missing here. Turn on hardware acceleration in
the browser's settings, or open the page in a recent Firefox, Chrome, Edge or Safari.`;

// What is shown and how. Also at hand as window.replay, for pages and tests that steer it.
class Show {
  constructor(page, canvas) {
    this.runs = page.runs;
    this.player = new Player(this.runs);
    this.stage = new Stage(canvas, page);
    this.director = new Director(this.stage, canvas);
    this.settings = {ghost: true, follow: true, apart: false, loop: false, camera: 'track', run: null};
    this.pictures = 0; // drawn so far
    this.rested = 0; // s without movement
    this.isStale = true;
    this.isAimed = false; // the camera stands where its preset says
    this.player.isPlaying = !window.matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.panel = new Panel(this);
    canvas.addEventListener('pointermove', (event) => event.buttons > 0 && this.turnByHand());
    canvas.addEventListener('wheel', () => this.turnByHand());
    new ResizeObserver(() => this.resize(canvas)).observe(canvas);
    this.resize(canvas);
    this.readHash();
    window.addEventListener('hashchange', () => this.readHash());
    canvas.addEventListener('webglcontextrestored', () => this.touch());
    window.requestAnimationFrame((now) => this.tick(now, now));
  }

  resize(canvas) {
    this.stage.resize(canvas.clientWidth || 1, canvas.clientHeight || 1, window.devicePixelRatio || 1);
    this.touch();
  }

  // There is something new to draw.
  touch() {
    this.isStale = true;
  }

  toggle() {
    this.player.toggle();
    this.touch();
  }

  seek(time) {
    this.player.seek(time);
    this.touch();
  }

  step(direction) {
    this.player.step(direction);
    this.touch();
  }

  skip(direction) {
    this.player.skip(direction);
    this.touch();
  }

  changeSpeed(direction) {
    this.player.changeSpeed(direction);
    this.touch();
  }

  turnByHand() {
    if (!this.director.isInside) {
      this.director.letGo();
      this.set({camera: null});
    }
  }

  // Show or hide a run.
  reveal(index, isShown) {
    this.stage.casts[index].group.visible = isShown;
    this.touch();
  }

  // Change some of the settings; a camera of null is one that was turned by hand.
  set(changes) {
    const before = this.settings;
    this.settings = {...before, ...changes};
    if (changes.speed !== undefined) {
      this.player.setSpeed(changes.speed);
    }
    this.player.loops = this.settings.loop;
    this.director.focus = this.settings.run;
    if (changes.apart !== undefined && changes.apart !== before.apart) {
      this.spread();
    }
    if (changes.follow !== undefined) {
      this.director.setFollows(changes.follow);
    }
    if (changes.camera) {
      this.isAimed = false;
    }
    this.touch();
  }

  // Put the runs side by side, across the way on which they set out, or all in one place.
  spread() {
    const gap = this.settings.apart ? APART * Math.max(...this.runs.map((run) => run.figure.height)) : 0;
    this.stage.casts.forEach(({group}, index) => group.position.set(0, ((this.runs.length - 1) / 2 - index) * -gap, 0));
    this.isAimed = this.isAimed && !CAMERAS.includes(this.settings.camera);
  }

  // Settings in the page's address, for instance #t=1.5&speed=0.25&ghost=0&paused=1&camera=side
  readHash() {
    const words = new URLSearchParams(window.location.hash.slice(1));
    const changes = {};
    const isOn = (value) => !['0', 'false', 'off', 'no'].includes(value);
    for (const name of ['ghost', 'follow', 'apart', 'loop']) {
      if (words.has(name)) {
        changes[name] = isOn(words.get(name));
      }
    }
    if (words.has('speed')) {
      changes.speed = Number(words.get('speed'));
    }
    if (CAMERAS.includes(words.get('camera'))) {
      changes.camera = words.get('camera');
    }
    if (words.has('run')) {
      const index = Number(words.get('run')) - 1;
      changes.run = this.runs[index] ? index : null;
    }
    if (words.has('t')) {
      this.player.seek(Number(words.get('t')));
    }
    if (words.has('paused')) {
      this.player.isPlaying = !isOn(words.get('paused'));
    }
    document.body.classList.toggle('is-bare', words.has('bare') && isOn(words.get('bare')));
    this.set(changes);
  }

  tick(now, before) {
    window.requestAnimationFrame((next) => this.tick(next, now));
    const seconds = Math.min(Math.max(now - before, 0) / 1000, LONGEST);
    const hasMoved = this.player.advance(seconds);
    if (hasMoved || this.isStale) {
      const {time} = this.player;
      this.director.follow(time);
      this.stage.place(time, this.settings.ghost, this.director.center);
      if (!this.isAimed) {
        this.director.use(this.settings.camera ?? this.director.preset, time);
        this.stage.place(time, this.settings.ghost, this.director.center);
        this.isAimed = true;
      }
    }
    const isTurning = this.director.update(seconds);
    if (hasMoved || isTurning) {
      this.rested = 0;
      this.stage.ease(seconds);
    } else {
      this.rested += seconds;
      this.isStale = (this.rested > REST && this.stage.sharpen()) || this.isStale;
    }
    if (hasMoved || isTurning || this.isStale) {
      this.isStale = false;
      this.stage.render();
      this.panel.refresh();
      this.panel.label(this.labelPlaces());
      this.pictures += 1;
    }
  }

  // Of every run where its name is written, if there are several.
  labelPlaces() {
    const {camera} = this.stage;
    return this.stage.casts.map(({run, group, root}) => {
      const top = new Vector3(...root).add(group.position);
      top.z += run.figure.height - run.figure.root_height + 0.12;
      const isAhead = top.clone().applyMatrix4(camera.matrixWorldInverse).z < -camera.near;
      if (this.runs.length === 1 || !group.visible || !isAhead || this.director.isInside) {
        return null;
      }
      top.project(camera);
      return [((top.x + 1) / 2) * window.innerWidth, ((1 - top.y) / 2) * window.innerHeight];
    });
  }
}

function fail(text, detail = '') {
  const message = document.getElementById('message');
  for (const part of [text, detail].filter(Boolean)) {
    message.append(Object.assign(document.createElement('p'), {textContent: part}));
  }
  message.classList.add('is-shown');
  document.body.classList.add('is-bare');
  document.documentElement.dataset.state = 'failed';
}

async function start() {
  if (!window.WebGL2RenderingContext || !document.createElement('canvas').getContext('webgl2')) {
    fail(NO_WEBGL);
    return;
  }
  const page = await readPage();
  window.replay = new Show(page, document.getElementById('view'));
  document.documentElement.dataset.state = 'ready';
}

start().catch((error) => fail('This page can’t be shown: part of it may be missing.', String(error)));
