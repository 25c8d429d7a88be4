/* The timeline: its canvases and labels, what is chosen and found. It tells the page of that through `hooks`. */

class Timeline {
  /** hooks: `chosen(sync)` when another sync is chosen here, `opened(sync)` when its detail is asked for, `openedHabit(number)` for a habit's. */
  constructor(data, hooks) {
    this.data = data;
    this.hooks = hooks;
    this.$ = (id) => document.getElementById(id);
    this.lanes = this.$("lanes");
    this.canvas = this.$("canvas");
    this.palette = new Palette(document.body);
    this.state = { sync: -1, finding: -1, slice: null, links: [], found: null, measure: null };
    this.options = { replay: null, all: false };
    this.hint = this.$("details").firstElementChild;
    this.hits = [];
    this.marks = [];
    this.hit = -1;
    this.frames = 0;
    /** How far the devices are scrolled where they don't fit their place, and how high that is if the reader set it. */
    this.sunk = 0;
    this.split = null;
    this.view = new View(data.length || 1, data.home, () => this.later());
    this.painter = new Painter(this.canvas.getContext("2d"), this.palette, data);
    this.margins = new Margins(this);
    this.replayed = new Replayed(this);
    this.relayout();
    this.controls = new Controls(this);
    this.splits = new Splits(this);
    new ResizeObserver(() => this.resize()).observe(this.$("timeline"));
    new ResizeObserver(() => { this.resize(); this.reveal(); }).observe(this.lanes);
    this.resize();
  }

  // layout and drawing

  relayout() {
    this.layout = layOut(this.data, this.options);
    this.$("lanes-content").style.height = `${this.layout.height}px`;
    const held = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.group : undefined;
    const named = this.layout.bands.filter((b) => b.text), box = this.$("lanes").parentElement;
    this.$("labels").replaceChildren(...named.filter((b) => !b.pinned).map((b) => this.label(b, 0)));
    this.$("pinned-labels").replaceChildren(...named.filter((b) => b.pinned).map((b) => this.label(b, this.layout.pinned)));
    if (held !== undefined) box.querySelector(`[data-group="${Number(held)}"]`)?.focus();
    this.later();
  }

  /** Show the worst lanes, or all of them. */
  show(all) {
    if (this.options.all === all) return;
    this.options.all = all;
    this.$("all-lanes").setAttribute("aria-pressed", String(all));
    for (const id of ["overview", "legend", "replayed"]) this.$(id).hidden = !all;
    this.replayed.field();
    this.relayout();
    this.resize();
  }

  label(band, from) {
    const head = band.kind === "head";
    const e = document.createElement(head ? "button" : "span");
    e.textContent = band.text;
    e.title = band.text;
    e.style.top = `${band.y - from}px`;
    e.style.height = `${head ? HEAD - 4 : band.h}px`;
    e.style.lineHeight = `${head ? HEAD - 4 : band.h}px`;
    if (band.kind === "projected") e.className = "projected-text";
    if (!head) return e;
    e.type = "button";
    e.dataset.group = band.group;
    e.setAttribute("aria-expanded", this.data.groups[band.group].open);
    e.addEventListener("click", () => {
      this.data.groups[band.group].open = !this.data.groups[band.group].open;
      this.relayout();
      this.resize();
    });
    return e;
  }

  /**
   * Where bands are: the host's scroll by `top`; the devices stay in the lowest `low` pixels, where they lie `shift` above
   * their place in the layout; `low` is 0 where all fits.
   */
  get place() {
    const height = this.lanes.clientHeight || 1, { layout } = this, all = layout.height - layout.pinned;
    if (layout.height <= height || !all) return { top: this.lanes.scrollTop, low: 0, shift: 0, height: Math.min(height, layout.height) };
    const low = Math.round(Math.min(all, Math.max(40, Math.min(this.split ?? 0.6 * height, height - 40))));
    this.sunk = Math.max(0, Math.min(this.sunk, all - low));
    return { top: Math.min(this.lanes.scrollTop, layout.pinned + low - height), low, shift: layout.pinned + this.sunk - (height - low), height };
  }

  /** Where a band is on the canvas. */
  topOf(band) {
    const { top, low, shift } = this.place;
    return band.y - (band.pinned && low ? shift : top);
  }

  resize() {
    const wide = this.$("timeline").clientWidth;
    this.left = Math.min(parseInt(getComputedStyle(this.$("timeline")).getPropertyValue("--label")) || 176, wide / 2);
    this.view.width = Math.max(50, this.lanes.clientWidth - this.left);
    this.fit(this.canvas, this.lanes.clientWidth, Math.min(this.lanes.clientHeight, this.layout.height) || 1);
    this.canvas.classList.toggle("tall", this.lanes.clientHeight < this.layout.height);
    this.fit(this.$("overview"), wide, 34);
    this.fit(this.$("ruler"), wide, RULER);
    this.draw();
  }

  fit(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  later() {
    if (this.due) return;
    this.due = requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.due);
    this.due = 0;
    this.frames++;
    const place = this.place;
    if (this.lanes.scrollTop > place.top) this.lanes.scrollTop = place.top;
    this.painter.frame(this.layout, this.view, this.state, this.left, place);
    this.splits.place(place);
    this.margins.ruler();
    this.margins.overview();
    this.thumb();
    this.replayed.tell();
  }

  // up and down

  /** Scroll the lanes by some pixels. */
  scroll(by) { this.lanes.scrollTop += by; }

  /** The handle that shows what part of the lanes is seen: the wheel is the page's, so it isn't a scroll bar. */
  thumb() {
    const { low, height } = this.place, { scrollTop } = this.lanes, thumb = this.$("thumb");
    const seen = height - low, all = low ? this.layout.pinned : this.layout.height;
    thumb.hidden = all <= seen + 1;
    if (thumb.hidden) return;
    thumb.style.height = `${Math.max(24, (seen * seen) / all)}px`;
    thumb.style.top = `${(scrollTop / (all - seen)) * (seen - Math.max(24, (seen * seen) / all))}px`;
  }

  hold(y) { this.held = { y, top: this.lanes.scrollTop }; }

  dragThumb(y) {
    const { low, height } = this.place, seen = height - low, all = low ? this.layout.pinned : this.layout.height, room = seen - Math.max(24, (seen * seen) / all);
    this.lanes.scrollTop = this.held.top + ((y - this.held.y) / room) * (all - seen);
  }

  // what is where

  /** What lies under a point of the canvas: {sync} or {slices, at, band} or nothing. */
  at(x, y) {
    const { top, low, shift, height } = this.place, pinned = low > 0 && y >= height - low, at = y + (pinned ? shift : top);
    const band = this.layout.bands.find((b) => at >= b.y && at < b.y + b.h && (!low || b.pinned === pinned));
    if (!band || x < this.left) return {};
    const t = this.view.t(x - this.left), slack = 3 / this.view.scale;
    if (band.kind === "syncs") return { band, sync: this.syncNear(t, slack, band.group) };
    if (band.kind === "idle") return { band, sync: this.idleNear(t, slack, band.group) };
    if (band.kind !== "slices" && band.kind !== "projected") return {};
    const { start, end } = band.slices;
    let i = upperBound(end, t);
    if (i >= start.length || start[i] > t) {
      const near = [i - 1, i].filter((k) => k >= 0 && k < start.length && start[k] - slack <= t && end[k] + slack >= t);
      if (!near.length) return {};
      i = near[0];
    }
    const sync = band.slices.what[i] === 9 ? this.syncNear((start[i] + end[i]) / 2, slack, band.group) : -1;
    return { band, slices: band.slices, at: i, sync };
  }

  syncNear(t, slack, group) {
    const { start, end, group: groups } = this.data.syncs;
    let best = -1, distance = slack;
    for (let i = 0; i < start.length && start[i] <= t + slack; i++) {
      const d = Math.max(start[i] - t, t - end[i], 0);
      if (groups[i] === group && d <= distance) [best, distance] = [i, d];
    }
    return best;
  }

  idleNear(t, slack, group) {
    const idle = this.data.syncs.idle;
    const i = idle.start.findIndex((s, k) => idle.group[k] === group && s - slack <= t && idle.end[k] + slack >= t);
    return i < 0 ? -1 : idle.sync[i];
  }

  // choosing

  choose(hit) {
    this.state.slice = hit.slices ? { slices: hit.slices, at: hit.at, band: hit.band } : null;
    this.state.links = hit.slices ? this.links(hit) : [];
    this.state.sync = hit.sync === undefined ? -1 : hit.sync;
    this.state.finding = this.state.sync < 0 ? -1 : this.data.syncs.finding[this.state.sync];
    this.tell();
    this.later();
    if (this.state.sync >= 0) this.hooks.chosen(this.state.sync);
  }

  /** A call with the device work it launched, or the other way round: [{call: [slices, at], work: [slices, at]}]. */
  links({ slices, at }) {
    const side = (name) => this.data.groups.filter((g) => g.side === name).flatMap((g) => g.lanes.flatMap((l) => l.slices));
    if (slices.launch) {
      const call = side("host").map((s) => [s, this.callAt(s, slices.launch[at])]).find(([, i]) => i >= 0);
      return call ? [{ call, work: [slices, at] }] : [];
    }
    if (!slices.sum || ![2, 3, 9].includes(slices.what[at])) return [];
    const links = [];
    for (const work of side("device")) {
      for (let i = lowerBound(work.start, slices.start[at]); i < work.start.length && links.length < 100; i++) {
        if (work.launch[i] === slices.start[at]) links.push({ call: [slices, at], work: [work, i] });
      }
    }
    return links;
  }

  /** The runtime call of these slices that begins at t, or -1. */
  callAt(slices, t) {
    const i = lowerBound(slices.start, t);
    return slices.start[i] === t && [2, 3, 9].includes(slices.what[i]) ? i : -1;
  }

  /** Show one sync point with what is around it; the timeline scrolls to its thread. */
  goto(sync) {
    const { start, end, bubble } = this.data.syncs;
    this.choose({ sync });
    const length = Math.max(end[sync] - start[sync] + bubble[sync], 20_000);
    this.view.fly(start[sync] - 0.6 * length, start[sync] + 2.2 * length);
    const group = this.data.syncs.group[sync];
    if (!this.layout.bands.some((b) => b.kind === "syncs" && b.group === group)) {
      this.show(true);
      this.unfold(group);
    }
    this.reveal();
  }

  unfold(group) {
    if (this.data.groups[group].open) return;
    this.data.groups[group].open = true;
    this.relayout();
    this.resize();
  }

  /** The habit's number that a pause belongs to, or -1. */
  habitOf(hit) {
    if (!hit?.slices || hit.slices.what[hit.at] !== PAUSE) return -1;
    return this.data.habits[hit.slices.name[hit.at]] ?? -1;
  }

  /** Whether what is chosen has a detail. */
  get opens() { return this.state.sync >= 0 || this.habitOf(this.state.slice) >= 0; }

  openChosen() {
    const habit = this.habitOf(this.state.slice);
    if (this.state.sync >= 0) this.hooks.opened(this.state.sync);
    else if (habit >= 0) this.hooks.openedHabit(habit);
  }

  /** Choose the first pause of a habit and show it; return whether there is one. */
  gotoHabit(number) {
    let first = null;
    this.data.groups.forEach((group, at) => group.lanes.forEach((lane) => lane.slices.forEach((slices) => {
      const k = number < 0 ? -1 : slices.what.findIndex((_, i) => this.habitOf({ slices, at: i }) === number);
      if (k >= 0 && !(first && first.slices.start[first.at] <= slices.start[k])) first = { slices, at: k, group: at };
    })));
    if (!first) return false;
    const { slices, at } = first, band = this.bring(first), start = slices.start[at], length = Math.max(slices.end[at] - start, 20_000);
    this.choose({ slices, at, band, sync: -1 });
    this.view.fly(start - 0.6 * length, start + 2.2 * length);
    return true;
  }

  /** Open a slice's group and scroll the lanes so far that its band is seen; return the band. */
  bring(hit) {
    if (!this.layout.bands.some((b) => b.slices === hit.slices)) {
      this.show(true);
      this.unfold(hit.group);
    }
    const band = this.layout.bands.find((b) => b.slices === hit.slices);
    const { top, low, height } = this.place, seen = height - low;
    if (band.pinned && low) this.sunk = band.y - this.layout.pinned - low / 2;
    else if (band.y < top || band.y + ROW > top + seen) this.lanes.scrollTop = band.y - seen / 2;
    return band;
  }

  /** Scroll the lanes so far that the chosen sync point is among what is seen. */
  reveal() {
    const group = this.data.syncs.group[this.state.sync], band = this.layout.bands.find((b) => b.group === group && b.kind === "syncs");
    const { top, low, height } = this.place, seen = height - low, above = seen > 80 ? HEAD : 0;
    if (band && (band.y < top || band.y + Math.min(60, seen) > top + seen)) this.lanes.scrollTop = Math.max(0, band.y - above);
  }

  /** The costliest sync point of a finding, in the step that is drawn twice if it has one; or -1. */
  worst(finding) {
    const { wait, bubble, start, finding: of } = this.data.syncs, { replay } = this.options;
    const cost = (i) => (i < 0 ? -1 : wait[i] + bubble[i]), twice = (i) => replay && start[i] >= replay.start && start[i] < replay.recorded;
    let best = -1, drawn = -1;
    of.forEach((f, i) => {
      if (f !== finding) return;
      if (cost(i) > cost(best)) best = i;
      if (twice(i) && cost(i) > cost(drawn)) drawn = i;
    });
    return drawn < 0 ? best : drawn;
  }

  /** The next sync after the chosen one, or the first in view; the previous one, or the last in view, with by = -1. */
  step(by) {
    const { start } = this.data.syncs, { view, state } = this;
    if (!start.length) return;
    let i = state.sync >= 0 ? state.sync + by : by > 0 ? lowerBound(start, view.from) : lowerBound(start, view.to) - 1;
    i = (i + start.length) % start.length;
    this.goto(i);
  }

  fitSelected() {
    const { slice, sync } = this.state;
    if (slice) {
      const [a, b] = [slice.slices.start[slice.at], slice.slices.end[slice.at]];
      this.view.fly(a - (b - a) * 0.1 - 100, b + (b - a) * 0.1 + 100);
    } else if (sync >= 0) this.goto(sync);
  }

  tell() {
    const details = this.$("details"), facts = this.facts(this.state.slice || {}, this.state.sync);
    if (!facts) return details.replaceChildren(this.hint);
    facts.rows.push(...this.linked());
    this.write(details, facts);
    if (this.state.sync >= 0 ? this.data.labels[this.state.finding] : this.opens) {
      const open = document.createElement("button");
      open.type = "button";
      open.textContent = "Details";
      open.addEventListener("click", () => this.openChosen());
      details.append(open);
    }
  }

  /** Say what is chosen where that isn't in the timeline. */
  say(text) {
    this.choose({});
    this.$("details").textContent = text;
  }

  /** Facts as text of an element. */
  write(element, facts) {
    const name = document.createElement("strong");
    name.textContent = facts.name;
    element.replaceChildren(name, ...facts.rows.map(([label, value]) => {
      const span = document.createElement("span"), b = document.createElement("b");
      b.textContent = label;
      span.dataset.fact = label;
      span.append(b, " ", value);
      return span;
    }));
  }

  /** One sync point in a sentence. */
  sentence(sync) {
    const { start, end, wait, bubble } = this.data.syncs, step = this.data.steps.find((s) => s[1] <= start[sync] && start[sync] < s[2]);
    const at = `${step ? `In step ${step[0]}, ` : ""}${duration(start[sync] - this.stepOf(start[sync]))} after ${step ? "its" : "the trace's"} begin`;
    return `${at}: the call lasts ${duration(end[sync] - start[sync])}, the host waits for ${duration(wait[sync])}, the device is idle ${duration(bubble[sync])} after it.`;
  }

  /** What the links of the chosen slice say in words. */
  linked() {
    const { links, slice } = this.state, [first] = links;
    if (!first) return [];
    const [call, i] = first.call, [work, k] = first.work, lag = duration(work.start[k] - call.start[i]);
    if (slice.slices === work) return [["launched by", `${this.data.names[call.name[i]]} ${lag} before`]];
    const more = links.length > 1 ? ` and ${links.length - 1} more` : "";
    return [["launches", `${this.data.names[work.name[k]]}${more}, which begins ${lag} later`]];
  }

  /** What is known of a slice or a sync: {name, rows: [[label, value]]}. */
  facts(hit, sync) {
    const { data } = this, rows = [];
    let name = "", brief = "";
    if (hit.slices) {
      const { start, end, name: names } = hit.slices;
      name = data.names[names[hit.at]];
      brief = duration(end[hit.at] - start[hit.at]);
      rows.push(["lasts", duration(end[hit.at] - start[hit.at])], ["at", duration(start[hit.at] - this.stepOf(start[hit.at]))]);
      rows.push(["on", `${data.groups[hit.band.group].title} · ${hit.band.lane.label}`]);
      if (hit.band.kind === "projected") rows.push(["projected", `from the replay of ${this.options.replay.of} ${this.options.replay.name}`]);
    }
    if (sync >= 0) {
      const { start, end, wait, bubble, finding } = data.syncs, label = data.labels[finding[sync]];
      if (!name) {
        name = label ? label.title : "sync point";
        rows.push(["call lasts", duration(end[sync] - start[sync])], ["at", duration(start[sync] - this.stepOf(start[sync]))]);
      } else if (label) rows.push(["sync", label.title]);
      brief = `waits ${duration(wait[sync])}, idle ${duration(bubble[sync])}`;
      rows.push(["host waits", duration(wait[sync])], ["device idle after it", duration(bubble[sync])]);
      if (label && label.place) rows.push(["where", label.place]);
    }
    return name ? { name, brief, rows } : null;
  }

  stepOf(t) {
    const step = this.data.steps.findLast((s) => s[1] <= t);
    return step && step[2] > t ? step[1] : 0;
  }

  // finding by name

  find(text) {
    const wanted = text.trim().toLowerCase();
    this.hits = [];
    this.hit = -1;
    /** How many slices of the trace have a name like this, drawn or not. */
    this.total = 0;
    this.state.found = null;
    if (wanted) {
      const names = new Set();
      this.data.names.forEach((n, i) => { if (n.toLowerCase().includes(wanted)) names.add(i); });
      this.state.found = names.size ? names : null;
      for (const i of names) this.total += this.data.counts[i];
      this.collect(names);
    }
    this.marks = this.hits.map((h) => h.t);
    this.later();
    return this.hits.length;
  }

  collect(names) {
    this.data.groups.forEach((group, number) => {
      for (const lane of group.lanes) {
        lane.slices.forEach((slices, row) => slices.name.forEach((n, at) => {
          if (names.has(n)) this.hits.push({ t: slices.start[at], slices, at, group: number, lane, row });
        }));
      }
    });
    this.hits.sort((a, b) => a.t - b.t);
  }

  /** Go to the next match: the first one after the view's begin, then one after the other. */
  findNext(by) {
    if (!this.hits.length) return;
    const begin = this.hits.findIndex((h) => h.t >= this.view.from);
    this.hit = this.hit < 0 ? Math.max(0, begin) : (this.hit + by + this.hits.length) % this.hits.length;
    const hit = this.hits[this.hit], band = this.bring(hit);
    this.choose({ slices: hit.slices, at: hit.at, band, sync: -1 });
    const length = Math.max(hit.slices.end[hit.at] - hit.t, 1000);
    const { from, to } = this.view;
    if (hit.t < from || hit.t > to || length * this.view.scale < 12) this.view.fly(hit.t - 4 * length, hit.t + 5 * length);
  }
}
