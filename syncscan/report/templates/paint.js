/* From bands of slices and a stretch of time to pixels; slices narrower than a pixel are drawn together. */

const WHAT = { 0: "op", 1: "scope", 2: "runtime", 3: "runtime", 4: "kernel", 5: "copy", 6: "copy", 8: "overhead", 9: "sync", 10: "input", 11: "ranks", 12: "pause" };
const INPUT = 10, COMMUNICATION = 11, PAUSE = 12;
const NARROW = 1.6;
const DENSITY = [0.4, 0.55, 0.7, 0.85, 1];
const LEVELS = 12;
const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

/** The page's colors as the canvas understands them, in three shades a kind so that neighbours can be told apart. */
class Palette {
  constructor(root) {
    this.root = root;
    this.read();
  }

  read() {
    const probe = document.createElement("span");
    this.root.append(probe);
    const css = (name) => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color; };
    for (const name of ["panel", "sunk", "ink", "muted", "line", "faint", "sync", "sync-soft", "bubble", "slice-ink",
      "projected", "projected-soft", "match", "accent", "accent-soft", "work", "idle", "free"]) this[name] = css(name);
    this.shades = {};
    for (const [what, name] of Object.entries(WHAT)) this.shades[what] = shadesOf(css(name));
    probe.remove();
    this.hatch = this.hatched();
    this.patterns = {
      [INPUT]: this.pattern((ink) => { ink.arc(3, 3, 1.3, 0, 7); ink.fill(); }),
      [PAUSE]: this.pattern((ink) => { ink.fillRect(0, 0, 6, 1.4); }),
      [COMMUNICATION]: this.pattern((ink) => ink.fillRect(0, 0, 1.6, 6)),
    };
  }

  /** Drawn over a color, so that it isn't told by color alone. */
  pattern(drawn) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const ink = tile.getContext("2d");
    ink.globalAlpha = 0.4;
    ink.fillStyle = ink.strokeStyle = this["slice-ink"];
    drawn(ink);
    return ink.createPattern(tile, "repeat");
  }

  hatched() {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const ink = tile.getContext("2d");
    ink.fillStyle = this["projected-soft"];
    ink.fillRect(0, 0, 6, 6);
    ink.strokeStyle = this.projected;
    ink.lineWidth = 1.1;
    ink.beginPath();
    for (const d of [-6, 0, 6]) { ink.moveTo(d - 1, 7); ink.lineTo(d + 7, -1); }
    ink.stroke();
    return ink.createPattern(tile, "repeat");
  }
}

function shadesOf(color) {
  const [r, g, b] = color.match(/[\d.]+/g).map(Number);
  return [1, 0.955, 1.04].map((f) => `rgb(${[r, g, b].map((c) => Math.min(255, Math.round(c * f))).join(" ")})`);
}

/** Draws bands on one canvas. `state` says what is selected, found and hovered; it is only read. */
class Painter {
  constructor(ink, palette, data) {
    this.ink = ink;
    this.palette = palette;
    this.data = data;
  }

  /** One frame: `place` says where the bands are: {top, low, shift, height}, see `Timeline.place`. */
  frame(layout, view, state, left, place) {
    const { ink, palette } = this, high = place.height - place.low;
    ink.save();
    ink.fillStyle = palette.panel;
    ink.fillRect(0, 0, left + view.width, place.height);
    ink.font = FONT;
    ink.textBaseline = "middle";
    ink.direction = "ltr";
    this.letter = this.letter || ink.measureText("cudaStreamSynchronize").width / 21;
    const all = !place.low;
    this.part(layout, view, state, left, layout.bands.filter((b) => all || !b.pinned), place.top, 0, high);
    if (!all) this.part(layout, view, state, left, layout.bands.filter((b) => b.pinned), place.shift, high, place.low);
    ink.translate(left, 0);
    ink.beginPath();
    ink.rect(0, 0, view.width, place.height);
    ink.clip();
    const at = (band) => band.y - (band.pinned && !all ? place.shift : place.top);
    for (const link of state.links) this.link(link, layout, view, at);
    if (state.measure) this.measure(view, state.measure, 0, place.height);
    ink.restore();
  }

  /** Bands on a part of the canvas, from `from` on, which show what lies `offset` above it in the layout. */
  part(layout, view, state, left, bands, offset, from, height) {
    const { ink } = this, top = offset + from;
    ink.save();
    ink.beginPath();
    ink.rect(0, from, left + view.width, height);
    ink.clip();
    ink.translate(left, -offset);
    this.grounds(bands, view, left, top, height);
    ink.beginPath();
    ink.rect(0, top, view.width, height);
    ink.clip();
    this.marks(view, state, top, height);
    for (const band of bands) {
      if (band.y + band.h >= top && band.y <= top + height) this.band(band, view, state);
    }
    ink.restore();
  }

  grounds(bands, view, left, top, height) {
    const { ink, palette } = this;
    ink.fillStyle = palette.sunk;
    for (const band of bands) {
      if (band.kind === "head") ink.fillRect(-left, band.y, left + view.width, HEAD - 4);
    }
    ink.fillStyle = palette.line;
    ink.fillRect(-1, top, 1, height);
    const zero = rulerZero(view, this.data.steps);
    ink.fillStyle = palette.faint;
    for (const tick of ticks({ from: view.from - zero, to: view.to - zero, scale: view.scale })) {
      ink.fillRect(Math.round(view.x(tick.t + zero)), top, 1, height);
    }
    ink.fillStyle = palette.line;
    for (const [, start, end] of this.data.steps) {
      const x = Math.round(view.x(start));
      if (x >= 0 && x <= view.width && (end - start) * view.scale > 24) ink.fillRect(x, top, 1, height);
    }
  }

  /** What is selected stands out through all lanes: the call in one tint, the idle time behind it in another. */
  marks(view, state, top, height) {
    const { ink, palette, data } = this, at = state.sync;
    if (at < 0) return;
    ink.globalAlpha = 0.13;
    this.column(view, data.syncs.start[at], data.syncs.end[at], palette.sync, top, height);
    const bubble = data.syncs.idle.sync.indexOf(at);
    if (bubble >= 0) this.column(view, data.syncs.idle.start[bubble], data.syncs.idle.end[bubble], palette.bubble, top, height);
    ink.globalAlpha = 1;
  }

  column(view, start, end, color, top, height) {
    this.ink.fillStyle = color;
    const x = view.x(start);
    this.ink.fillRect(x, top, Math.max(1, view.x(end) - x), height);
  }

  band(band, view, state) {
    const y = band.y + 1, h = band.h - 2;
    if (band.kind === "slices") {
      this.density(band, view);
      this.slices(band, view, state, y, h);
    } else if (band.kind === "syncs") this.syncs(band, view, state, y, h - 1);
    else if (band.kind === "idle") this.idle(band, view, state, y, h - 1);
    else if (band.kind === "closed") this.closed(band, view, y, h);
    else if (band.kind === "projected") this.projected(band, view, y, h);
  }

  slices(band, view, state, y, h) {
    const { ink, palette } = this, { start, end, name, what } = band.slices;
    const n = start.length, scale = view.scale, from = view.from;
    const labels = [], plated = [];
    let color = "";
    const fill = (c) => { if (c !== color) ink.fillStyle = color = c; };
    let i = upperBound(end, from);
    this.dim = state.found ? 0.4 : 1;
    while (i < n && start[i] < view.to) {
      const x = (start[i] - from) * scale, w = (end[i] - start[i]) * scale;
      if (w < NARROW) { i = this.crowd(band.slices, i, view, y, h, fill, band.lane.kind === "stream"); continue; }
      const x0 = Math.max(x, -2), w0 = Math.min(x + w, view.width + 2) - x0;
      const found = state.found && state.found.has(name[i]);
      ink.globalAlpha = found ? 1 : this.dim;
      fill(palette.shades[what[i]][name[i] % 3]);
      ink.fillRect(x0, y, w0 > 3 ? w0 - 0.6 : w0, h);
      if (palette.patterns[what[i]] && w0 > 4) {
        fill(palette.patterns[what[i]]);
        ink.fillRect(x0, y, w0 - 0.6, h);
      }
      if (found || (state.slice && state.slice.slices === band.slices && state.slice.at === i)) this.outline(x0, y, w0, h, found);
      if (w0 > 24) (palette.patterns[what[i]] ? plated : labels).push(i, x0, w0);
      i++;
    }
    ink.globalAlpha = 1;
    this.labels(labels, name, what, y + h / 2);
    this.plates(plated, name, y, h, palette.ink);
  }

  /**
   * Slices too narrow to be seen, as pixels that are the denser the more of their time is covered; device work (`rising`)
   * as high as the part that is covered, so that kernels shorter than a pixel don't look like a busy stream.
   */
  crowd(slices, i, view, y, h, fill, rising = false) {
    const { start, end, sum, what } = slices, { scale, from } = view, n = start.length;
    let run = -1, last = -1, level = -1;
    const flush = () => {
      if (level < 0) return;
      const high = rising ? Math.max(1.5, (h * (level + 1)) / LEVELS) : h;
      this.ink.globalAlpha = (rising ? 1 : DENSITY[level]) * this.dim;
      this.ink.fillRect(run, y + h - high, last + 1 - run, high);
    };
    fill(this.palette.shades[what[i]][1]);
    while (i < n && start[i] < view.to && (end[i] - start[i]) * scale < NARROW) {
      const x = Math.floor((start[i] - from) * scale);
      let next = lowerBound(start, from + (x + 1) / scale, i + 1);
      if (next > i + 1 && (end[next - 1] - start[next - 1]) * scale >= NARROW) next--;
      const levels = rising ? LEVELS : DENSITY.length;
      const now = Math.min(levels - 1, Math.floor((sum[next] - sum[i]) * scale * levels));
      if (now !== level || x !== last + 1) {
        flush();
        [run, level] = [x, now];
      }
      last = x;
      i = next;
    }
    flush();
    this.ink.globalAlpha = 1;
    return i;
  }

  outline(x, y, w, h, found) {
    const { ink, palette } = this;
    ink.strokeStyle = found ? palette.match : palette.ink;
    ink.lineWidth = found ? 1.5 : 2;
    ink.strokeRect(x + 0.75, y + 0.75, Math.max(1, w - 1.5), h - 1.5);
  }

  labels(labels, name, what, y) {
    const { ink, palette, data } = this;
    for (let k = 0; k < labels.length; k += 3) {
      const x = Math.max(labels[k + 1], 0), room = labels[k + 1] + labels[k + 2] - x - 6;
      const fits = Math.floor(room / this.letter);
      if (fits < 3) continue;
      ink.fillStyle = what[labels[k]] === 9 ? palette.panel : palette["slice-ink"];
      const text = brief(data.names[name[labels[k]]]);
      ink.fillText(text.length <= fits ? text : text.slice(0, fits - 1) + "…", x + 4, y, room);
    }
  }

  /** Where slices were left out of the report: how busy the lane was. */
  density(band, view) {
    if (!band.lane.busy || band.row) return;
    const { ink, palette, data } = this, busy = band.lane.busy, bin = data.length / busy.length;
    const kinds = { scopes: 1, ops: 0, stream: 4 };
    ink.fillStyle = palette.shades[kinds[band.lane.kind]][0];
    ink.globalAlpha = 0.75;
    const first = Math.max(0, Math.floor(view.from / bin)), last = Math.min(busy.length, Math.ceil(view.to / bin));
    for (let i = first; i < last; i++) {
      const h = (ROW - 3) * busy[i] / 255;
      ink.fillRect(view.x(i * bin), band.y + ROW - 2 - h, Math.max(1, bin * view.scale + 0.5), h);
    }
    ink.globalAlpha = 1;
    ink.fillStyle = palette.panel;
    for (const [a, b] of data.intervals) {
      if (b > view.from && a < view.to) ink.fillRect(view.x(a), band.y, (b - a) * view.scale, ROW);
    }
  }

  syncs(band, view, state, y, h) {
    const { ink, palette } = this, syncs = this.data.syncs;
    let drawn = -9;
    for (let i = 0; i < syncs.start.length && syncs.start[i] < view.to; i++) {
      if (syncs.group[i] !== band.group || syncs.end[i] < view.from) continue;
      const x = view.x(syncs.start[i]), w = Math.max(2, (syncs.end[i] - syncs.start[i]) * view.scale);
      if (x + w < drawn + 1) continue;
      drawn = x + w;
      const dim = state.finding >= 0 && state.finding !== syncs.finding[i];
      ink.globalAlpha = dim ? 0.4 : 1;
      ink.fillStyle = palette["sync-soft"];
      ink.fillRect(x, y, w, h);
      ink.fillStyle = palette.sync;
      ink.fillRect(x, y, Math.max(2, Math.min(w, syncs.wait[i] * view.scale)), h);
      if (i === state.sync) this.outline(x - 1, y - 1, w + 2, h + 2, false);
      if (w > 60) this.syncText(i, x, w, y + h / 2, view, dim);
    }
    ink.globalAlpha = 1;
  }

  /** In the wait, or in the rest of the call: whichever is wider, so that the text stands on one color. */
  syncText(i, x, w, y, view, dim) {
    const { ink, palette, data } = this, waits = Math.min(w, data.syncs.wait[i] * view.scale), solid = waits > w / 2;
    const left = Math.max(solid ? x : x + waits, 0), room = Math.min(solid ? x + waits : x + w, view.width) - left - 8;
    const label = data.labels[data.syncs.finding[i]], fits = Math.floor(room / this.letter);
    if (fits <= 6) return;
    const text = `${duration(data.syncs.wait[i])}  ${label ? label.title : ""}`;
    ink.globalAlpha = 1;
    ink.fillStyle = solid && !dim ? palette.panel : palette["slice-ink"];
    ink.fillText(text.length <= fits ? text : text.slice(0, fits - 1) + "…", left + 4, y, room);
  }

  /** Gaps narrower than a pixel add up: a pixel is as strong as the part of it that is idle. */
  idle(band, view, state, y, h) {
    const { ink, palette } = this, idle = this.data.syncs.idle;
    let pixel = -1, covered = 0;
    const flush = () => {
      if (covered > 0.04) {
        ink.globalAlpha = Math.min(1, 0.15 + covered);
        ink.fillRect(pixel, y + 2, 1, h - 4);
      }
      covered = 0;
    };
    ink.fillStyle = palette.bubble;
    for (let i = Math.max(0, lowerBound(idle.start, view.from) - 1); i < idle.start.length && idle.start[i] < view.to; i++) {
      if (idle.group[i] !== band.group || idle.end[i] < view.from) continue;
      const dim = state.finding >= 0 && state.finding !== this.data.syncs.finding[idle.sync[i]] ? 0.35 : 1;
      const x = view.x(idle.start[i]), w = (idle.end[i] - idle.start[i]) * view.scale;
      if (w < NARROW) {
        if (Math.floor(x) !== pixel) flush();
        pixel = Math.floor(x);
        covered += w * dim;
        continue;
      }
      ink.globalAlpha = dim;
      ink.fillRect(x, y + 2, w > 3 ? w - 0.6 : w, h - 4);
    }
    flush();
    ink.globalAlpha = 1;
  }

  closed(band, view, y, h) {
    this.dim = 1;
    for (const lane of this.data.groups[band.group].lanes) {
      this.density({ lane, y: y - 2, row: 0 }, view);
      const { start, what } = lane.slices[0];
      let color = "";
      const fill = (c) => { if (c !== color) this.ink.fillStyle = color = c; };
      for (let i = upperBound(lane.slices[0].end, view.from); i < start.length && start[i] < view.to;) {
        const x = view.x(start[i]), w = (lane.slices[0].end[i] - start[i]) * view.scale;
        if (w < NARROW) { i = this.crowd(lane.slices[0], i, view, y, h, fill, lane.kind === "stream"); continue; }
        fill(this.palette.shades[what[i]][1]);
        this.ink.fillRect(x, y, w, h);
        i++;
      }
    }
  }

  projected(band, view, y, h) {
    const { ink, palette } = this, { start, end, name } = band.slices, labels = [];
    const hatched = () => { ink.fillStyle = palette.hatch; };
    this.dim = 1;
    ink.strokeStyle = palette.projected;
    ink.lineWidth = 1;
    hatched();
    for (let i = upperBound(end, view.from); i < start.length && start[i] < view.to;) {
      const w = (end[i] - start[i]) * view.scale;
      if (w < NARROW) { i = this.crowd(band.slices, i, view, y, h, hatched, band.lane.kind === "stream"); continue; }
      const x = Math.max(-2, view.x(start[i])), shown = Math.min(view.width + 2, view.x(end[i])) - x;
      ink.fillRect(x, y, shown, h);
      if (shown > 5) ink.strokeRect(x + 0.5, y + 0.5, shown - 1, h - 1);
      if (shown > 50) labels.push(i, x, shown);
      i++;
    }
    this.plates(labels, name, y, h, palette.projected);
    this.elsewhere(view, y, h);
  }

  /** Where the view holds nothing of the step that is drawn twice: which step that is. */
  elsewhere(view, y, h) {
    if (!this.replay || overlaps(this.replay, view)) return;
    this.ink.fillStyle = this.palette.muted;
    this.ink.fillText(`only ${this.replay.of} is drawn projected`, 6, y + h / 2 + 0.5);
  }

  /** Names on patterned ground, each on a plate so that it can be read. */
  plates(labels, name, y, h, color) {
    const { ink, palette, data } = this;
    for (let k = 0; k < labels.length; k += 3) {
      const x = Math.max(labels[k + 1], 0), room = labels[k + 1] + labels[k + 2] - x - 8;
      const text = brief(data.names[name[labels[k]]]), fits = Math.floor(room / this.letter);
      if (fits < 4) continue;
      const words = text.length <= fits ? text : text.slice(0, fits - 1) + "…";
      ink.fillStyle = palette.panel;
      ink.fillRect(x + 3, y + 1, Math.min(room, ink.measureText(words).width + 4), h - 2);
      ink.fillStyle = color;
      ink.fillText(words, x + 5, y + h / 2 + 0.5, room);
    }
  }

  /** A line from a call to the device work that it launched, where both are on the screen's bands; `at` places a band. */
  link({ call: [calls, i], work: [work, k] }, layout, view, at) {
    const { ink, palette } = this;
    const from = layout.bands.find((b) => b.slices === calls), to = layout.bands.find((b) => b.slices === work);
    if (!from || !to) return;
    const x1 = view.x(calls.start[i]), y1 = at(from) + from.h - 1, x2 = view.x(work.start[k]), y2 = at(to) + 1;
    ink.strokeStyle = palette.accent;
    ink.lineWidth = 1.5;
    ink.beginPath();
    ink.moveTo(x1, y1);
    ink.bezierCurveTo(x1, (y1 + y2) / 2, x2, (y1 + y2) / 2, x2, y2);
    ink.stroke();
    this.outline(x1, at(from) + 1, Math.max(3, (calls.end[i] - calls.start[i]) * view.scale), from.h - 2, false);
    this.outline(x2, at(to) + 1, Math.max(3, (work.end[k] - work.start[k]) * view.scale), to.h - 2, false);
  }

  measure(view, [a, b], top, height) {
    const { ink, palette } = this, x = view.x(Math.min(a, b)), w = Math.abs(b - a) * view.scale;
    ink.globalAlpha = 0.15;
    ink.fillStyle = palette.accent;
    ink.fillRect(x, top, w, height);
    ink.globalAlpha = 1;
    ink.fillStyle = palette.accent;
    ink.font = "600 " + FONT;
    ink.fillText(duration(Math.abs(b - a)), x + 5, top + 10);
  }
}

/** Whether any of a step that is drawn twice is in view. */
function overlaps(replay, view) { return replay.start < view.to && Math.max(replay.end, replay.recorded) > view.from; }

/** A name as short as it still says what it is: a C++ kernel without namespaces and template arguments. */
function brief(name) {
  const cut = name.search(/[<(]/);
  if (cut < 4 || !name.includes("::")) return name;
  return name.slice(0, cut).replace(/^void /, "").replace(/^.*::/, "");
}

/** Where the zero of ruler and grid is: the begin of the step that fills most of the view, or of the trace. */
function rulerZero({ from, to }, steps) {
  const step = steps.findLast((s) => s[1] <= (from + to) / 2);
  return step && step[2] > (from + to) / 2 && to - from < 1.7 * (step[2] - step[1]) ? step[1] : 0;
}

/** Round times that lie in view, about 110 pixels apart. */
function ticks(view) {
  const raw = 110 / view.scale, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((m) => m * power >= raw) * power;
  const out = [];
  for (let t = Math.ceil(view.from / step) * step; t < view.to; t += step) out.push({ t, step });
  return out;
}
