// The clock: which moment is shown.

export const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];

export class Player {
  constructor(runs) {
    this.duration = Math.max(...runs.map((run) => run.duration));
    this.dt = Math.min(...runs.map((run) => run.dt));
    this.starts = [...new Set(runs.flatMap((run) => run.starts.map((state) => state * run.dt)))].sort((a, b) => a - b);
    this.time = 0;
    this.speed = 1;
    this.isPlaying = true;
    this.loops = false;
  }

  // Let `seconds` of real time pass; says whether another moment is shown.
  advance(seconds) {
    if (!this.isPlaying || this.duration === 0) {
      return false;
    }
    this.time += seconds * this.speed;
    if (this.time >= this.duration) {
      this.time = this.loops ? this.time % this.duration : this.duration;
      this.isPlaying = this.loops;
    }
    return true;
  }

  toggle() {
    this.isPlaying = !this.isPlaying;
    if (this.isPlaying && this.time >= this.duration) {
      this.time = 0;
    }
  }

  seek(time) {
    this.time = Math.min(Math.max(Number.isFinite(time) ? time : 0, 0), this.duration);
  }

  // To the next state (+1) or the one before (-1), and stand there.
  step(direction) {
    this.isPlaying = false;
    this.seek((Math.round(this.time / this.dt) + direction) * this.dt);
  }

  // To the start of the next episode (+1), or of this one and then the one before (-1).
  skip(direction) {
    const margin = direction > 0 ? 1e-6 : -0.3 * this.speed;
    const others = this.starts.filter((start) => (start - this.time - margin) * direction > 0);
    const found = direction > 0 ? others[0] : others[others.length - 1];
    this.seek(found ?? (direction > 0 ? this.duration : 0));
  }

  setSpeed(speed) {
    this.speed = Math.min(Math.max(Number.isFinite(speed) ? speed : 1, SPEEDS[0]), SPEEDS[SPEEDS.length - 1]);
  }

  // To the next faster (+1) or slower (-1) of SPEEDS.
  changeSpeed(direction) {
    const others = SPEEDS.filter((speed) => (speed - this.speed) * direction > 1e-6);
    this.setSpeed((direction > 0 ? others[0] : others[others.length - 1]) ?? this.speed);
  }
}
