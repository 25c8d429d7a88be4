/* The icicle of the time in view: how much of it the steps' thread spends in which function, scope, op and call. */

const IN_VIEW_MOST = 60000, IN_VIEW_LEAST = 0.0005;
/** Kind of what is drawn → its label and color; functions are those of recorded Python stacks. */
const IN_VIEW_KINDS = [["scopes", 2], ["ops", 1], ["calls", 6], ["calls that wait", 0], ["the program's functions", 3], ["other Python functions", 4]];
const IN_VIEW_FUNCTIONS = 4, NOT_DRAWN = -2;

class InView {
  constructor(timeline, data) {
    this.timeline = timeline;
    this.data = data;
    this.group = data.groups.find((group) => group.side === "host" && group.lanes.some((lane) => lane.kind === "ops" || lane.kind === "scopes"));
    this.box = document.getElementById("in-view");
    this.note = document.getElementById("in-view-note");
    this.icicle = null;
    if (!this.group) { this.box.hidden = true; return; }
    const changed = timeline.view.changed;
    timeline.view.changed = () => { changed(); this.later(); };
    this.box.addEventListener("toggle", () => this.draw());
  }

  /** Once the view stands still. */
  later() {
    if (!this.box.open) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.draw(), 180);
  }

  draw() {
    if (!this.box.open) return;
    const { from, to } = this.timeline.view, slices = this.slices(from, to), whole = this.data.whole || this.data.intervals.some(([a, b]) => a <= from && to <= b);
    const tree = slices && this.tree(slices, from, to);
    this.note.textContent = slices ? this.sentences(whole) : "Zoom in: too much is in view.";
    if (!tree) return;
    if (this.icicle) this.icicle.show(tree);
    else this.icicle = new Icicle(tree, "in-view-icicle");
  }

  /** What the times are, and what of them isn't here. */
  sentences(whole) {
    const { python } = this.data, slowed = python ? "the profiler and its Python stacks slowed the host" : "the profiler slowed the host";
    const parts = [`${this.group.title}: recorded time, in which ${slowed}.`];
    if (!whole) parts.push("Of this trace only what lies near the findings is here.");
    if (python && python.least) parts.push(`Python functions that took less than ${duration(python.least)} may be missing.`);
    return parts.join(" ");
  }

  /** The slices and functions in this time, callers before what they call; null if they are too many. */
  slices(from, to) {
    const found = [];
    for (const lane of this.group.lanes) {
      if (lane.kind !== "ops" && lane.kind !== "scopes") continue;
      for (const row of lane.slices) {
        for (let i = upperBound(row.end, from); i < row.start.length && row.start[i] < to; i++) found.push([row.start[i], row.end[i], row.name[i], inViewKind(row.what[i]), lane.kind === "scopes" ? 1 : 2]);
        if (found.length > IN_VIEW_MOST) return null;
      }
    }
    return [...this.functions(from, to), ...found].sort((a, b) => a[0] - b[0] || b[1] - a[1] || a[4] - b[4]);
  }

  /** Their names have the numbers after those of the slices. */
  functions(from, to) {
    const { python, names } = this.data, found = [];
    for (let i = 0; python && i < python.start.length && python.start[i] < to; i++) {
      const start = python.start[i], end = start + python.dur[i], name = python.name[i];
      if (end > from) found.push([start, end, names.length + name, IN_VIEW_FUNCTIONS + python.texts[name][2], 0]);
    }
    return found;
  }

  /** Name and place of a slice or function. */
  texts(name) {
    const { python, names } = this.data;
    return name < names.length ? [names[name], ""] : python.texts[name - names.length];
  }

  /** Those of one name below one caller are one node; the columns are as of the sampled tree. */
  tree(slices, from, to) {
    const root = { ns: 0, below: new Map() }, open = [];
    for (const [start, end, name, kind] of slices) {
      while (open.length && (open[open.length - 1].end <= start || open[open.length - 1].end < end)) open.pop();
      const above = open.length ? open[open.length - 1].node : root;
      let node = above.below.get(name);
      if (!node) above.below.set(name, node = { ns: 0, name, kind, below: new Map() });
      node.ns += Math.min(end, to) - Math.max(start, from);
      open.push({ end, node });
    }
    const texts = [""], numbers = new Map([["", 0]]), took = IN_VIEW_KINDS.map(() => 0), out = { parent: [], us: [], self: [], owner: [], name: [], place: [], phase: [] };
    const numberOf = (text) => {
      if (!numbers.has(text)) numbers.set(text, texts.push(text) - 1);
      return numbers.get(text);
    };
    const visit = (node, parent) => {
      const inside = [...node.below.values()].sort((a, b) => b.ns - a.ns);
      for (const child of inside) {
        const called = [...child.below.values()].reduce((sum, one) => sum + one.ns, 0), self = Math.max(0, child.ns - called) / 1e3;
        took[child.kind] += self;
        if (child.ns < IN_VIEW_LEAST * (to - from)) { visit(child, NOT_DRAWN); continue; }
        const number = out.parent.length, [name, place] = this.texts(child.name);
        const columns = { parent, us: child.ns / 1e3, self, owner: child.kind, name: numberOf(name), place: numberOf(place), phase: 0 };
        for (const [key, value] of Object.entries(columns)) out[key].push(value);
        visit(child, number);
      }
    };
    visit(root, -1);
    const step = (to - from) / 1e3, drawn = IN_VIEW_KINDS.map((_, kind) => kind).filter((kind) => out.owner.includes(kind));
    const owners = drawn.map((kind) => [IN_VIEW_KINDS[kind][0], `${((100 * took[kind]) / step).toFixed(0)}%`]);
    out.owner = out.owner.map((kind) => drawn.indexOf(kind));
    return { ...out, texts, step, whole: `in view, ${icicleTime(step)}`, owners, whose: "kind", colors: drawn.map((kind) => IN_VIEW_KINDS[kind][1]) };
  }
}

/** From the kind of a slice in the timeline to that of IN_VIEW_KINDS. */
function inViewKind(what) {
  if (what === 1) return 0;
  if (what === 9) return 3;
  return what === 2 || what === 3 ? 2 : 1;
}
