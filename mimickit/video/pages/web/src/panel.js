// The page's controls: what is pressed goes to the show, what the show does is seen in them.
import {CAMERAS} from './director.js';
import {SPEEDS} from './player.js';

const NAMES = {
  track: 'Track', side: 'Side', front: 'Front', top: 'Top', orbit: 'Orbit', first_person: 'Eyes',
};
const FIRST_FACTS = ['episode', 'episode_time', 'episode_return', 'reward'];
const FACT_NAMES = {episode_time: 'time', episode_return: 'return'};
const MAX_FACTS = 10;
const MANY_MARKS = 80;
const MANY = 2; // runs, above which each says less
const ACTIONS = {
  ' ': (show) => show.toggle(),
  k: (show) => show.toggle(),
  ArrowLeft: (show, fast) => (fast ? show.seek(show.player.time - 1) : show.step(-1)),
  ArrowRight: (show, fast) => (fast ? show.seek(show.player.time + 1) : show.step(1)),
  Home: (show) => show.seek(0),
  End: (show) => show.seek(show.player.duration),
  '[': (show) => show.skip(-1),
  ']': (show) => show.skip(1),
  '-': (show) => show.changeSpeed(-1),
  '+': (show) => show.changeSpeed(1),
  '=': (show) => show.changeSpeed(1),
  f: (show) => show.set({follow: !show.settings.follow}),
  g: (show) => show.set({ghost: !show.settings.ghost}),
  b: (show) => show.set({apart: !show.settings.apart}),
  l: (show) => show.set({loop: !show.settings.loop}),
  h: (show) => document.body.classList.toggle('is-bare'),
  '?': () => byId('help').showModal(),
};

const byId = (id) => document.getElementById(id);

function make(parent, tag, text = '', attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  parent.append(element);
  return element;
}

export class Panel {
  constructor(show) {
    this.show = show;
    this.bar();
    this.marks();
    this.cards = show.runs.map((run, index) => this.card(run, index));
    this.tags = show.runs.map((run) => make(byId('tags'), 'span', run.label, {style: `--color: ${run.color}`, hidden: ''}));
    byId('runs').classList.toggle('are-many', show.runs.length > MANY);
    const notes = new Set(show.runs.flatMap((run) => run.notes));
    notes.forEach((note) => make(byId('notes'), 'p', note, {class: 'note'}));
    window.addEventListener('keydown', (event) => this.key(event));
    document.addEventListener('click', (event) => {
      if (event.detail > 0 && event.target.closest('button')) {
        document.activeElement.blur(); // Space is for playing again
      }
    });
  }

  bar() {
    const {show} = this;
    const {player, runs} = show;
    const on = (id, event, action) => byId(id).addEventListener(event, action);
    on('play', 'click', () => show.toggle());
    on('skip-back', 'click', () => show.skip(-1));
    on('skip-on', 'click', () => show.skip(1));
    on('scrub', 'input', (event) => show.seek(Number(event.target.value)));
    on('speed', 'change', (event) => show.set({speed: Number(event.target.value)}));
    on('follow', 'click', () => show.set({follow: !show.settings.follow}));
    on('ghost', 'click', () => show.set({ghost: !show.settings.ghost}));
    on('apart', 'click', () => show.set({apart: !show.settings.apart}));
    on('loop', 'click', () => show.set({loop: !show.settings.loop}));
    on('help-open', 'click', () => byId('help').showModal());
    byId('scrub').max = player.duration;
    this.cameras = CAMERAS.map((name, index) => {
      const attributes = {role: 'radio', 'data-camera': name, title: `${NAMES[name]} camera  ${index + 1}`};
      const button = make(byId('cameras'), 'button', NAMES[name], attributes);
      button.addEventListener('click', () => show.set({camera: name}));
      return button;
    });
    byId('ghost').hidden = !runs.some((run) => run.hasGhost.includes(1));
    byId('apart').hidden = runs.length === 1;
    byId('skip-back').hidden = byId('skip-on').hidden = player.starts.length === 1;
    this.speeds();
  }

  speeds() {
    const {speed} = this.show.player;
    const select = byId('speed');
    select.replaceChildren();
    for (const value of [...new Set([...SPEEDS, speed])].sort((a, b) => a - b)) {
      make(select, 'option', `${value}×`, {value});
    }
    select.value = String(speed);
  }

  // Where episodes begin, and where a run ends before the others.
  marks() {
    const {player, runs} = this.show;
    const several = runs.length > 1;
    byId('marks').classList.toggle('are-many', player.starts.length > MANY_MARKS);
    const mark = (run, time, name) => {
      const left = (100 * time) / (player.duration || 1);
      const color = several ? `; --color: ${run.color}` : '';
      make(byId('marks'), 'i', '', {style: `left: ${left}%${color}`, class: name});
    };
    for (const run of runs) {
      run.starts.slice(1).forEach((state) => mark(run, state * run.dt, 'start'));
      if (run.duration < player.duration - 1e-6) {
        mark(run, run.duration, 'end');
      }
    }
  }

  card(run, index) {
    const {show} = this;
    const card = make(byId('runs'), 'section', '', {class: 'run', style: `--color: ${run.color}`, 'aria-label': run.label});
    let name = null;
    if (show.runs.length > 1) {
      const head = make(card, 'div', '', {class: 'head'});
      const box = make(head, 'input', '', {type: 'checkbox', 'aria-label': `Show ${run.label}`});
      box.checked = true;
      box.addEventListener('change', () => show.reveal(index, box.checked));
      name = make(head, 'button', run.label, {title: 'The camera goes along with this run only', 'aria-pressed': 'false'});
      name.addEventListener('click', () => show.set({run: show.settings.run === index ? null : index}));
      make(head, 'span', 'ended', {class: 'ended'});
    }
    make(card, 'p', run.about, {class: 'about'});
    return {card, name, list: make(card, 'dl'), rows: new Map()};
  }

  key(event) {
    const target = event.target;
    const isPressing = target.matches('button, select') && [' ', 'Enter'].includes(event.key);
    const isChoosing = target.matches('select') && event.key.startsWith('Arrow');
    if (event.ctrlKey || event.metaKey || event.altKey || isPressing || isChoosing || byId('help').open) {
      return;
    }
    const number = Number(event.key) - 1;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (CAMERAS[number]) {
      this.show.set({camera: CAMERAS[number]});
    } else if (ACTIONS[key]) {
      ACTIONS[key](this.show, event.shiftKey);
    } else {
      return;
    }
    event.preventDefault();
  }

  // Show the present moment.
  refresh() {
    const {player, settings, runs} = this.show;
    const {time, duration} = player;
    write(byId('clock'), `${time.toFixed(2)} / ${duration.toFixed(2)} s`);
    const scrub = byId('scrub');
    scrub.value = time;
    scrub.style.setProperty('--done', `${(100 * time) / (duration || 1)}%`);
    scrub.setAttribute('aria-valuetext', `${time.toFixed(2)} of ${duration.toFixed(2)} seconds`);
    document.body.classList.toggle('is-playing', player.isPlaying);
    byId('play').setAttribute('aria-label', player.isPlaying ? 'Pause' : 'Play');
    for (const name of ['follow', 'ghost', 'apart', 'loop']) {
      byId(name).setAttribute('aria-pressed', settings[name]);
    }
    this.cameras.forEach((button) => button.setAttribute('aria-checked', button.dataset.camera === settings.camera));
    if (Number(byId('speed').value) !== player.speed) {
      this.speeds();
    }
    runs.forEach((run, index) => this.refreshCard(run, index));
  }

  refreshCard(run, index) {
    const {player, settings} = this.show;
    const {card, name, list, rows} = this.cards[index];
    const isOver = run.duration < player.duration - 1e-6 && player.time >= run.duration;
    card.classList.toggle('is-ended', isOver);
    name?.setAttribute('aria-pressed', settings.run === index);
    const facts = factsOf(run, Math.min(player.time, run.duration));
    for (const [fact, text] of facts) {
      if (!rows.has(fact)) {
        make(list, 'dt', FACT_NAMES[fact] ?? fact.replaceAll('_', ' '));
        rows.set(fact, make(list, 'dd'));
      }
    }
    const texts = new Map(facts);
    rows.forEach((cell, fact) => write(cell, texts.get(fact) ?? '–'));
  }

  // Put the runs' names over their heads; places are [x, y] in pixels of the page, null where out of sight.
  label(places) {
    places.forEach((place, index) => {
      this.tags[index].hidden = place === null;
      if (place !== null) {
        this.tags[index].style.transform = `translate(${place[0].toFixed(1)}px, ${place[1].toFixed(1)}px) translate(-50%, -100%)`;
      }
    });
  }
}

function write(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

// Pairs of name and text, in the order in which they are shown.
function factsOf(run, time) {
  const known = new Map(run.factsAt(time));
  const names = [...FIRST_FACTS.filter((name) => known.has(name)), ...[...known.keys()].filter((name) => !FIRST_FACTS.includes(name))];
  const facts = names.slice(0, MAX_FACTS).map((name) => [name, factText(name, known.get(name))]);
  const episode = run.episodes.get(run.starts[run.episodeAt(time)]);
  if (episode?.outcome) {
    facts.push(['outcome', episode.outcome]);
  }
  return facts;
}

function factText(name, value) {
  if (typeof value === 'string') {
    return value;
  }
  if (name === 'episode_time') {
    return `${value.toFixed(2)} s`;
  }
  return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) < 10 ? 3 : 1);
}
