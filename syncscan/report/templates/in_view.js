/* The icicle of the time in view: how much of it the steps' thread spends in which scope, op and call. */

const IN_VIEW_MOST = 60000, IN_VIEW_LEAST = 0.0005;
/** Kind of a slice → its label and color. */
const IN_VIEW_KINDS = [["scopes", 2], ["ops", 1], ["calls", 6], ["calls that wait", 0]];

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
    this.note.textContent = !slices ? "Zoom in: too much is in view." : `${this.group.title}, as recorded${whole ? "" : "; of this trace only what lies near the findings is here"}.`;
    if (!tree) return;
    if (this.icicle) this.icicle.show(tree);
    else this.icicle = new Icicle(tree, "in-view-icicle");
  }

  /** The slices in this time, callers before what they call; null if they are too many. */
  slices(from, to) {
    const found = [];
    for (const lane of this.group.lanes) {
      if (lane.kind !== "ops" && lane.kind !== "scopes") continue;
      for (const row of lane.slices) {
        for (let i = upperBound(row.end, from); i < row.start.length && row.start[i] < to; i++) found.push([row.start[i], row.end[i], row.name[i], row.what[i], lane.kind === "scopes" ? 0 : 1]);
        if (found.length > IN_VIEW_MOST) return null;
      }
    }
    return found.sort((a, b) => a[0] - b[0] || b[1] - a[1] || a[4] - b[4]);
  }

  /** Those of one name below one caller are one node; the columns are as of the sampled tree. */
  tree(slices, from, to) {
    const root = { ns: 0, below: new Map() }, open = [];
    for (const [start, end, name, what] of slices) {
      while (open.length && (open[open.length - 1].end <= start || open[open.length - 1].end < end)) open.pop();
      const above = open.length ? open[open.length - 1].node : root;
      let node = above.below.get(name);
      if (!node) above.below.set(name, node = { ns: 0, name, kind: what === 1 ? 0 : what === 9 ? 3 : what === 2 || what === 3 ? 2 : 1, below: new Map() });
      node.ns += Math.min(end, to) - Math.max(start, from);
      open.push({ end, node });
    }
    const texts = [""], numbers = new Map(), out = { parent: [], us: [], self: [], owner: [], name: [], place: [], phase: [] };
    const visit = (node, parent) => {
      const inside = [...node.below.values()].sort((a, b) => b.ns - a.ns);
      for (const child of inside) {
        if (child.ns < IN_VIEW_LEAST * (to - from)) continue;
        if (!numbers.has(child.name)) { numbers.set(child.name, texts.length); texts.push(this.data.names[child.name]); }
        const called = [...child.below.values()].reduce((sum, one) => sum + one.ns, 0), number = out.parent.length;
        const columns = { parent, us: child.ns / 1e3, self: Math.max(0, child.ns - called) / 1e3, owner: child.kind, name: numbers.get(child.name), place: 0, phase: 0 };
        for (const [key, value] of Object.entries(columns)) out[key].push(value);
        visit(child, number);
      }
    };
    visit(root, -1);
    const took = IN_VIEW_KINDS.map(() => 0);
    out.self.forEach((us, i) => { took[out.owner[i]] += us; });
    const step = (to - from) / 1e3, owners = IN_VIEW_KINDS.map(([label], kind) => [label, `${((100 * took[kind]) / step).toFixed(0)}%`]);
    return { ...out, texts, step, whole: `in view, ${icicleTime(step)}`, owners, colors: IN_VIEW_KINDS.map(([, color]) => color) };
  }
}
