/* The stretch of time on the screen, and which band of the picture holds which slices. */

const NO_SLICES = { start: [], end: [], sum: [0], name: [], what: [] };
const ROW = 17, THIN = 14, HEAD = 24, GAP = 6, CLOSED = 13;

/** The visible time: `from` and `to` in ns, animated towards where it is sent. */
class View {
  constructor(whole, home, changed) {
    this.whole = whole;
    this.home = home;
    this.changed = changed;
    this.width = 1;
    [this.from, this.to] = home;
    this.flight = 0;
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
  }

  get scale() { return this.width / (this.to - this.from); }

  x(t) { return (t - this.from) * this.scale; }

  t(x) { return this.from + x / this.scale; }

  set(from, to) {
    const margin = this.whole * 0.05;
    const length = Math.min(Math.max(to - from, 20), this.whole * 1.1);
    const middle = (from + to) / 2;
    from = Math.min(Math.max(middle - length / 2, -margin), this.whole + margin - length);
    this.from = from;
    this.to = from + length;
    this.changed();
  }

  zoom(factor, x) {
    this.flight++;
    const at = this.t(x), length = (this.to - this.from) / factor;
    const from = at - (x / this.width) * length;
    this.set(from, from + length);
  }

  pan(pixels) {
    this.flight++;
    const by = pixels / this.scale;
    this.set(this.from + by, this.to + by);
  }

  /** Go there, in a short flight that keeps the reader oriented. */
  fly(from, to) {
    const id = ++this.flight, [a, b] = [this.from, this.to], begin = performance.now();
    if (this.calm.matches) return this.set(from, to);
    const step = (now) => {
      if (id !== this.flight) return;
      const p = Math.min(1, Math.max(0, (now - begin) / 260)), ease = 1 - (1 - p) ** 3;
      this.set(a + (from - a) * ease, b + (to - b) * ease);
      if (p < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }
}

/**
 * The bands from top to bottom: {y, h, kind, group, pinned, …}; a group's first band is its head. Devices come last, from
 * `pinned` on: they stay in view while the host's threads scroll.
 */
function layOut(data, options) {
  if (!options.all) return twoLanes(data);
  const bands = [], device = (group) => Number(group.side !== "host");
  let y = 0, pinned = -1;
  const add = (h, band) => { bands.push({ y, h, pinned: pinned >= 0, ...band }); y += h; };
  const order = data.groups.map((group, number) => [group, number]).sort(([a], [b]) => device(a) - device(b));
  order.forEach(([group, number]) => {
    if (device(group) && pinned < 0) pinned = y;
    add(HEAD, { kind: "head", group: number, text: group.title });
    const syncs = group.side === "host" ? data.syncs.group.includes(number) : data.syncs.idle.group.includes(number);
    if (!group.open) {
      add(CLOSED, { kind: "closed", group: number });
    } else {
      if (syncs) add(THIN + 3, { kind: group.side === "host" ? "syncs" : "idle", group: number, text: group.side === "host" ? "syncs" : "idle after syncs" });
      const first = (lane) => Number(lane.kind !== "pauses");
      for (const lane of [...group.lanes].sort((a, b) => first(a) - first(b))) {
        lane.slices.forEach((slices, row) => add(ROW, { kind: "slices", group: number, lane, slices, row, text: row ? "" : lane.label }));
        if (options.replay && lane.twice) {
          add(THIN + 2, { kind: "projected", group: number, lane, slices: options.replay.slices.get(lane) || NO_SLICES, text: `${lane.label}, projected` });
        }
      }
    }
    y += GAP;
  });
  return { bands, height: y, pinned: pinned < 0 ? y : pinned };
}

/** The worst of it: the thread that waits, or drives the device, and the device behind it, a lane each. */
function twoLanes(data) {
  const bands = [], { syncs } = data;
  let y = GAP;
  const add = (h, band) => { bands.push({ y, h, pinned: false, ...band }); y += h; };
  for (const side of ["host", "device"]) {
    const host = side === "host", marked = host ? syncs.group : syncs.idle.group;
    const groups = data.groups.map((group, number) => ({ group, number })).filter(({ group }) => group.side === side && group.lanes.length);
    const chosen = groups.find(({ number }) => marked.includes(number)) ?? groups[0];
    if (!chosen) continue;
    const { group, number } = chosen, lanes = group.lanes.filter((lane) => lane.kind !== "pauses");
    const lane = lanes.find((l) => l.kind === "ops") ?? [...lanes].sort((a, b) => b.slices[0].start.length - a.slices[0].start.length)[0];
    if (marked.includes(number)) add(THIN + 3, { kind: host ? "syncs" : "idle", group: number, text: host ? "waits" : "idle after waits" });
    if (lane) add(ROW, { kind: "slices", group: number, lane, slices: lane.slices[0], row: 0, text: host ? "host thread" : "device" });
    y += GAP;
  }
  return { bands, height: y, pinned: y };
}
