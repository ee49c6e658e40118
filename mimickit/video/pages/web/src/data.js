// Reads what the page holds: the JSON that describes the runs, and their states. The form is described in
// replay_states.py.
import {unzlibSync} from 'fflate';

const CHUNK = 256; // states a block

export async function readPage() {
  const content = JSON.parse(document.getElementById('content').textContent);
  const parts = [];
  for (let index = 0; index <= content.runs.length; index += 1) {
    const element = document.getElementById(`data-${index}`);
    parts.push(await inflate(fromBase64(element.textContent)));
    element.remove(); // the text is not needed any more
  }
  content.meshes = readMeshes(content.meshes, parts[0]);
  content.runs = content.runs.map((head, index) => new Run(head, content, parts[index + 1]));
  return content;
}

async function inflate(bytes) {
  if (typeof DecompressionStream === 'undefined') {
    return unzlibSync(bytes);
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) {
    return Uint8Array.fromBase64(text);
  }
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) {
    bytes[i] = letters.charCodeAt(i);
  }
  return bytes;
}

function readMeshes(entries, bytes) {
  let at = 0;
  return entries.map(({vertices, faces, low, size}) => {
    const index = new Uint32Array(bytes.buffer.slice(at, at + 12 * faces));
    at += 12 * faces;
    const steps = new Uint16Array(bytes.buffer.slice(at, at + 6 * vertices));
    at += 6 * vertices + ((6 * vertices) % 4);
    return {index, position: Float32Array.from(steps, (step, i) => low[i % 3] + (step / 65535) * size[i % 3])};
  });
}

class Blocks {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  // Changes of `channels` rows of `states` numbers.
  next(channels, states) {
    const width = this.bytes[this.at];
    const size = channels * states;
    const changes = new Int32Array(size);
    this.at += 1;
    for (let plane = 0; plane < width; plane += 1) {
      for (let i = 0; i < size; i += 1) {
        changes[i] |= this.bytes[this.at + i] << (8 * plane);
      }
      this.at += size;
    }
    for (let i = 0; i < size; i += 1) {
      changes[i] = (changes[i] >>> 1) ^ -(changes[i] & 1);
    }
    return changes;
  }
}

// One environment of one recording. Times are seconds since its first state.
export class Run {
  constructor(head, {pos_steps: posSteps, rot_steps: rotSteps}, bytes) {
    const {label, about, figure, color, dt, notes} = head;
    Object.assign(this, {label, about, figure, color, dt, notes});
    this.numStates = head.num_states;
    this.duration = (head.num_states - 1) * head.dt;
    this.posSteps = posSteps;
    this.rotSteps = rotSteps;
    this.numBodies = 2 * head.figure.solid;
    this.isCut = new Uint8Array(this.numStates);
    head.cuts.forEach((state) => (this.isCut[state] = 1));
    this.starts = [...new Set([0, ...head.cuts])];
    this.hasGhost = new Uint8Array(this.numStates);
    head.ghosts.forEach(([first, end]) => this.hasGhost.fill(1, first, end));
    this.episodes = new Map(head.episodes.map((episode) => [episode.first, episode]));
    const blocks = new Blocks(bytes);
    this.readPoses(blocks);
    this.readFacts(blocks, head.facts);
  }

  readPoses(blocks) {
    const count = this.numBodies;
    this.pos = new Int32Array(this.numStates * count * 3);
    this.rot = new Int16Array(this.numStates * count * 4);
    const last = new Int32Array(7 * count);
    for (let first = 0; first < this.numStates; first += CHUNK) {
      const states = Math.min(CHUNK, this.numStates - first);
      const changes = blocks.next(7 * count, states);
      for (let channel = 0; channel < 7 * count; channel += 1) {
        const body = Math.floor(channel / 7);
        const part = channel % 7;
        let value = last[channel];
        for (let s = 0; s < states; s += 1) {
          value = (value + changes[channel * states + s]) | 0;
          const place = (first + s) * count + body;
          if (part < 3) {
            this.pos[3 * place + part] = value;
          } else {
            this.rot[4 * place + part - 3] = value;
          }
        }
        last[channel] = value;
      }
    }
  }

  readFacts(blocks, {numbers, words}) {
    this.words = words;
    this.numbers = {};
    if (numbers.length === 0) {
      return;
    }
    const changes = blocks.next(numbers.length, this.numStates);
    numbers.forEach((name, row) => {
      const bits = changes.slice(row * this.numStates, (row + 1) * this.numStates);
      for (let s = 1; s < this.numStates; s += 1) {
        bits[s] = (bits[s] + bits[s - 1]) | 0;
      }
      this.numbers[name] = new Float32Array(bits.buffer);
    });
  }

  // The states around a time, and how far it is from the first to the second. Nothing lies between two episodes.
  around(time) {
    const exact = Math.min(Math.max(time / this.dt, 0), this.numStates - 1);
    const low = Math.min(Math.floor(exact + 1e-6), this.numStates - 1);
    const high = Math.min(low + 1, this.numStates - 1);
    return this.isCut[high] ? {low, high: low, blend: 0} : {low, high, blend: Math.max(exact - low, 0)};
  }

  // Where a body is: position (m) into out, an array of 3.
  position(body, {low, high, blend}, out) {
    const a = 3 * (low * this.numBodies + body);
    const b = 3 * (high * this.numBodies + body);
    for (let i = 0; i < 3; i += 1) {
      out[i] = (this.pos[a + i] + (this.pos[b + i] - this.pos[a + i]) * blend) / this.posSteps;
    }
    return out;
  }

  // How a body is turned, into a three.js Quaternion; spare is another one.
  rotation(body, {low, high, blend}, out, spare) {
    const a = 4 * (low * this.numBodies + body);
    const b = 4 * (high * this.numBodies + body);
    out.set(this.rot[a], this.rot[a + 1], this.rot[a + 2], this.rot[a + 3]).normalize();
    if (blend > 0) {
      out.slerp(spare.set(this.rot[b], this.rot[b + 1], this.rot[b + 2], this.rot[b + 3]).normalize(), blend);
    }
    return out;
  }

  // Number of the episode that is shown at a time, from 0.
  episodeAt(time) {
    const {low} = this.around(time);
    let index = this.starts.length - 1;
    while (index > 0 && this.starts[index] > low) {
      index -= 1;
    }
    return index;
  }

  // The first and the last state of an episode.
  boundsOf(episode) {
    const end = episode + 1 < this.starts.length ? this.starts[episode + 1] : this.numStates;
    return [this.starts[episode], end - 1];
  }

  // What was noted of a time: pairs of name and value (number or text).
  factsAt(time) {
    const {low} = this.around(time);
    const facts = Object.entries(this.numbers).map(([name, column]) => [name, column[low]]);
    for (const [name, changes] of Object.entries(this.words)) {
      const past = changes.filter(([state]) => state <= low);
      if (past.length > 0) {
        facts.push([name, past[past.length - 1][1]]);
      }
    }
    return facts.filter(([, value]) => typeof value === 'string' || Number.isFinite(value));
  }
}
