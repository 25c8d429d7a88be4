/* Above the lanes: the overview of the whole trace, the ruler, and the steps. */

const RULER = 54;

/** Draws them for a timeline, whose view and data it only reads. */
class Margins {
  constructor(timeline) {
    this.timeline = timeline;
    this.kept = new Map();
  }

  ruler() {
    const ink = document.getElementById("ruler").getContext("2d"), { view, palette } = this.timeline;
    const width = this.timeline.left + view.width;
    ink.clearRect(0, 0, width + 20, RULER);
    ink.font = FONT;
    ink.textBaseline = "middle";
    ink.fillStyle = palette.muted;
    ink.fillText(`${duration(view.to - view.from)}${this.timeline.left > 120 ? " in view" : ""}`, 10, 11);
    if (this.timeline.data.steps.length) ink.fillText("steps", 10, 30);
    ink.save();
    ink.beginPath();
    ink.rect(this.timeline.left, 0, view.width, RULER);
    ink.clip();
    ink.translate(this.timeline.left, 0);
    const zero = rulerZero(view, this.timeline.data.steps);
    for (const tick of ticks({ from: view.from - zero, to: view.to - zero, scale: view.scale })) {
      const x = Math.round(view.x(tick.t + zero));
      ink.fillStyle = palette.line;
      ink.fillRect(x, 14, 1, 6);
      ink.fillStyle = palette.muted;
      ink.fillText(exactly(tick.t, tick.step), x + 4, 11);
    }
    this.steps(ink);
    ink.restore();
  }

  steps(ink) {
    const { view, palette } = this.timeline;
    for (const [number, start, end] of this.timeline.data.steps) {
      if (end < view.from || start > view.to) continue;
      const x = Math.max(view.x(start), -1), w = Math.min(view.x(end), view.width + 1) - x;
      ink.fillStyle = palette["accent-soft"];
      ink.fillRect(x, 22, Math.max(1, w - 1), 16);
      ink.fillStyle = palette.accent;
      ink.fillRect(x, 22, 1.5, 16);
      if (w > 60) ink.fillText(`step ${number}  ${duration(end - start)}`, x + 7, 30, w - 10);
    }
    this.beside(ink);
  }

  /** Below the steps, to their scale: how long each takes without the profiler, and the projected one that is drawn. */
  beside(ink) {
    const { view, palette, options: { replay }, data: { steps, unprofiled } } = this.timeline;
    ink.fillStyle = palette.free;
    for (const [, start, end] of unprofiled ? steps : []) {
      if (end > view.from && start < view.to) ink.fillRect(view.x(start), 39, unprofiled * view.scale, 4);
    }
    if (!replay || !this.timeline.options.all) return;
    ink.fillStyle = palette.hatch;
    ink.fillRect(view.x(replay.start), 45, (replay.end - replay.start) * view.scale, 6);
  }

  overview() {
    const ink = document.getElementById("overview").getContext("2d"), { view, palette, data } = this.timeline;
    const width = view.width, scale = width / (data.length || 1);
    ink.clearRect(0, 0, this.timeline.left + width + 20, 34);
    ink.font = FONT;
    ink.textBaseline = "middle";
    ink.fillStyle = palette.muted;
    ink.fillText(`${this.timeline.left > 120 ? "whole trace" : "all"} ${duration(data.length)}`, 10, 17);
    ink.save();
    ink.translate(this.timeline.left, 0);
    ink.fillStyle = palette["accent-soft"];
    for (const [, start, end] of data.steps) ink.fillRect(start * scale, 5, Math.max(1, (end - start) * scale - 1), 24);
    this.strokes(ink, data.syncs.idle.start, data.syncs.idle.end, scale, palette.bubble, 18, 8, 0.1);
    this.strokes(ink, data.syncs.start, data.syncs.end, scale, palette.sync, 9, 8, 0.6);
    this.strokes(ink, this.timeline.marks, this.timeline.marks, scale, palette.match, 28, 5, 1);
    const x = Math.max(0, view.from * scale), w = Math.max(3, Math.min(width, view.to * scale) - x);
    ink.globalAlpha = 0.12;
    ink.fillStyle = palette.ink;
    ink.fillRect(0, 0, x, 34);
    ink.fillRect(x + w, 0, width - x - w, 34);
    ink.globalAlpha = 1;
    ink.strokeStyle = palette.accent;
    ink.lineWidth = 1.5;
    ink.strokeRect(x + 0.75, 1, w - 1.5, 32);
    ink.restore();
  }

  /** Stretches of time as pixels, each as strong as the part of it that is covered; `least` keeps brief ones visible. */
  strokes(ink, start, end, scale, color, y, h, least) {
    ink.fillStyle = color;
    this.strength(start, end, scale).forEach((s, x) => {
      if (!s) return;
      ink.globalAlpha = Math.min(1, Math.max(least, s));
      ink.fillRect(x, y, 1, h);
    });
    ink.globalAlpha = 1;
  }

  /** How much of each pixel these stretches cover; kept, since the overview changes only with the window's width. */
  strength(start, end, scale) {
    const kept = this.kept.get(start);
    if (kept && kept.scale === scale) return kept.strength;
    const strength = new Float32Array(Math.ceil(this.timeline.view.width) + 2);
    for (let i = 0; i < start.length; i++) {
      const from = Math.max(0, start[i] * scale), to = Math.min(strength.length - 1, end[i] * scale);
      for (let x = Math.floor(from); x <= to && x < strength.length; x++) {
        strength[x] += Math.max(0, Math.min(to, x + 1) - Math.max(from, x)) + 1e-6;
      }
    }
    if (this.kept.size > 4) this.kept.clear();
    this.kept.set(start, { scale, strength });
    return strength;
  }
}

/** A tick's time in the unit of the distance between ticks, so that neighbours never read alike. */
function exactly(t, step) {
  const [unit, scale] = step >= 1e9 ? ["s", 1e9] : step >= 1e6 ? ["ms", 1e6] : step >= 1e3 ? ["µs", 1e3] : ["ns", 1];
  const big = scale < 1e6 && Math.abs(t) >= 1e6 ? ["ms", 1e6] : [unit, scale];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / big[1])));
  return `${(t / big[1]).toFixed(digits)} ${big[0]}`;
}
