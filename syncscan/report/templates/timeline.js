/* The timeline: canvases, labels, pointer and keys. It tells the page what was chosen through `hooks`. */

class Timeline {
  /** hooks: `opened(sync)` when a sync's finding is asked for. */
  constructor(data, hooks) {
    this.data = data;
    this.hooks = hooks;
    this.$ = (id) => document.getElementById(id);
    this.lanes = this.$("lanes");
    this.canvas = this.$("canvas");
    this.palette = new Palette(document.body);
    this.state = { sync: -1, finding: -1, slice: null, links: [], found: null, measure: null };
    this.options = { overlay: true };
    this.hits = [];
    this.hit = -1;
    this.frames = 0;
    this.view = new View(data.span || 1, data.home, () => this.later());
    this.painter = new Painter(this.canvas.getContext("2d"), this.palette, data);
    this.projections();
    this.relayout();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.$("timeline"));
    new ResizeObserver(() => this.resize()).observe(this.lanes);
    this.resize();
  }

  // layout and drawing

  projections() {
    const replay = this.data.replay;
    for (const lane of replay ? replay.lanes : []) {
      const start = unpack(lane.start, true), dur = unpack(lane.dur), sum = new Float64Array(start.length + 1);
      dur.forEach((d, i) => { sum[i + 1] = sum[i] + d; });
      const slices = { start, end: start.map((t, i) => t + dur[i]), sum, name: unpack(lane.name), what: new Uint8Array(start.length) };
      if (start.length) this.data.groups[lane.group].lanes[lane.lane].projected = slices;
    }
  }

  relayout() {
    this.layout = layOut(this.data, this.options);
    this.$("lanes-content").style.height = `${this.layout.height}px`;
    const labels = this.$("labels");
    const held = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.group : undefined;
    labels.replaceChildren(...this.layout.bands.filter((b) => b.text).map((b) => this.label(b)));
    if (held !== undefined) labels.querySelector(`[data-group="${Number(held)}"]`)?.focus();
    this.later();
  }

  label(band) {
    const head = band.kind === "head";
    const e = document.createElement(head ? "button" : "span");
    e.textContent = band.text;
    e.title = band.text;
    e.style.top = `${band.y}px`;
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

  resize() {
    const wide = this.$("timeline").clientWidth;
    this.left = Math.min(parseInt(getComputedStyle(this.$("timeline")).getPropertyValue("--label")) || 176, wide / 2);
    this.view.width = Math.max(50, this.lanes.clientWidth - this.left);
    this.fit(this.canvas, this.lanes.clientWidth, Math.min(this.lanes.clientHeight, this.layout.height) || 1);
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
    const height = this.canvas.clientHeight || parseInt(this.canvas.style.height);
    this.painter.frame(this.layout, this.view, this.state, this.left, this.lanes.scrollTop, height);
    this.drawRuler();
    this.drawOverview();
  }

  drawRuler() {
    const canvas = this.$("ruler"), ink = canvas.getContext("2d"), { view, palette } = this;
    const width = this.left + view.width;
    ink.clearRect(0, 0, width + 20, RULER);
    ink.font = FONT;
    ink.textBaseline = "middle";
    ink.fillStyle = palette.muted;
    ink.fillText(`${duration(view.to - view.from)} in view`, 10, 11);
    if (this.data.steps.length) ink.fillText("steps", 10, 30);
    ink.save();
    ink.beginPath();
    ink.rect(this.left, 0, view.width, RULER);
    ink.clip();
    ink.translate(this.left, 0);
    const zero = this.zero();
    for (const tick of ticks({ from: view.from - zero, to: view.to - zero, scale: view.scale })) {
      const x = Math.round(view.x(tick.t + zero));
      ink.fillStyle = palette.line;
      ink.fillRect(x, 14, 1, 6);
      ink.fillStyle = palette.muted;
      ink.fillText(exactly(tick.t, tick.step), x + 4, 11);
    }
    this.drawSteps(ink);
    ink.restore();
  }

  drawSteps(ink) {
    const { view, palette } = this;
    for (const [number, start, end] of this.data.steps) {
      if (end < view.from || start > view.to) continue;
      const x = Math.max(view.x(start), -1), w = Math.min(view.x(end), view.width + 1) - x;
      ink.fillStyle = palette["accent-soft"];
      ink.fillRect(x, 22, Math.max(1, w - 1), 16);
      ink.fillStyle = palette.accent;
      ink.fillRect(x, 22, 1.5, 16);
      if (w > 60) ink.fillText(`step ${number}  ${duration(end - start)}`, x + 7, 30, w - 10);
    }
    const replay = this.data.replay;
    if (replay && this.options.overlay) {
      const x = view.x(replay.start), w = (replay.end - replay.start) * view.scale;
      ink.fillStyle = palette.hatch;
      ink.fillRect(x, 40, w, 5);
    }
  }

  /** Where the ruler's zero is: the begin of the step that fills most of the view, or of the trace. */
  zero() {
    const { from, to } = this.view, step = this.data.steps.findLast((s) => s[1] <= (from + to) / 2);
    return step && step[2] > (from + to) / 2 && to - from < 1.7 * (step[2] - step[1]) ? step[1] : 0;
  }

  drawOverview() {
    const canvas = this.$("overview"), ink = canvas.getContext("2d"), { view, palette, data } = this;
    const width = view.width, scale = width / (data.span || 1);
    ink.clearRect(0, 0, this.left + width + 20, 34);
    ink.font = FONT;
    ink.textBaseline = "middle";
    ink.fillStyle = palette.muted;
    ink.fillText(`whole trace ${duration(data.span)}`, 10, 17);
    ink.save();
    ink.translate(this.left, 0);
    ink.fillStyle = palette["accent-soft"];
    for (const [, start, end] of data.steps) ink.fillRect(start * scale, 5, Math.max(1, (end - start) * scale - 1), 24);
    this.strokes(ink, data.syncs.idle.start, data.syncs.idle.end, scale, palette.bubble, 18, 8, 0.1);
    this.strokes(ink, data.syncs.start, data.syncs.end, scale, palette.sync, 9, 8, 0.6);
    const marks = this.hits.map((h) => h.t);
    this.strokes(ink, marks, marks, scale, palette.match, 28, 5, 1);
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

  /** Stretches of time as pixels, each as strong as the part of it that is covered; `least` keeps the brief ones visible. */
  strokes(ink, start, end, scale, color, y, h, least = 0.3) {
    const strength = new Float32Array(Math.ceil(this.view.width) + 2);
    for (let i = 0; i < start.length; i++) {
      const from = Math.max(0, start[i] * scale), to = Math.min(strength.length - 1, end[i] * scale);
      for (let x = Math.floor(from); x <= to && x < strength.length; x++) {
        strength[x] += Math.max(0, Math.min(to, x + 1) - Math.max(from, x)) + 1e-6;
      }
    }
    ink.fillStyle = color;
    strength.forEach((s, x) => {
      if (!s) return;
      ink.globalAlpha = Math.min(1, Math.max(least, s));
      ink.fillRect(x, y, 1, h);
    });
    ink.globalAlpha = 1;
  }

  // what is where

  /** What lies under a point of the canvas: {sync} or {slices, at, band} or nothing. */
  at(x, y) {
    const top = y + this.lanes.scrollTop;
    const band = this.layout.bands.find((b) => top >= b.y && top < b.y + b.h);
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
    if (!this.data.groups[group].open) {
      this.data.groups[group].open = true;
      this.relayout();
      this.resize();
    }
    const band = this.layout.bands.find((b) => b.group === group && b.kind === "syncs");
    const { scrollTop, clientHeight } = this.lanes;
    if (band && (band.y < scrollTop || band.y + 60 > scrollTop + clientHeight)) this.lanes.scrollTop = Math.max(0, band.y - HEAD);
  }

  /** The costliest sync point of a finding, or -1. */
  worst(finding) {
    const { wait, bubble, finding: of } = this.data.syncs;
    let best = -1;
    of.forEach((f, i) => { if (f === finding && (best < 0 || wait[i] + bubble[i] > wait[best] + bubble[best])) best = i; });
    return best;
  }

  /** The next sync after the chosen one, or after the middle of the view; the previous one with by = -1. */
  step(by) {
    const { start } = this.data.syncs, { view, state } = this;
    if (!start.length) return;
    const middle = (view.from + view.to) / 2;
    let i = state.sync >= 0 ? state.sync + by : by > 0 ? lowerBound(start, middle) : lowerBound(start, middle) - 1;
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
    details.replaceChildren();
    if (!facts) return;
    const name = document.createElement("strong");
    name.textContent = facts.name;
    facts.rows.push(...this.linked());
    details.append(name, ...facts.rows.map(([label, value]) => {
      const span = document.createElement("span"), b = document.createElement("b");
      b.textContent = label;
      span.append(b, " ", value);
      return span;
    }));
    if (this.state.sync >= 0 && this.data.labels[this.state.finding]) {
      const open = document.createElement("button");
      open.type = "button";
      open.textContent = "open finding";
      open.addEventListener("click", () => this.hooks.opened(this.state.sync));
      details.append(open);
    }
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
    let name = "";
    if (hit.slices) {
      const { start, end, name: names } = hit.slices;
      name = data.names[names[hit.at]];
      rows.push(["lasts", duration(end[hit.at] - start[hit.at])], ["at", duration(start[hit.at] - this.stepOf(start[hit.at]))]);
      rows.push(["on", `${data.groups[hit.band.group].title} · ${hit.band.lane.label}`]);
      if (hit.band.kind === "projected") rows.push(["projected:", "as the replay has it without any sync"]);
    }
    if (sync >= 0) {
      const { start, end, wait, bubble, finding } = data.syncs, label = data.labels[finding[sync]];
      if (!name) {
        name = label ? label.title : "sync point";
        rows.push(["call lasts", duration(end[sync] - start[sync])], ["at", duration(start[sync] - this.stepOf(start[sync]))]);
      } else if (label) rows.push(["sync", label.title]);
      rows.push(["host waits", duration(wait[sync])], ["device idle behind it", duration(bubble[sync])]);
      if (label && label.place) rows.push(["where", label.place]);
    }
    return name ? { name, rows } : null;
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
    this.state.found = null;
    if (wanted) {
      const names = new Set();
      this.data.names.forEach((n, i) => { if (n.toLowerCase().includes(wanted)) names.add(i); });
      this.state.found = names.size ? names : null;
      this.collect(names);
    }
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
    const hit = this.hits[this.hit];
    if (!this.data.groups[hit.group].open) {
      this.data.groups[hit.group].open = true;
      this.relayout();
      this.resize();
    }
    const band = this.layout.bands.find((b) => b.slices === hit.slices);
    this.choose({ slices: hit.slices, at: hit.at, band, sync: -1 });
    const length = Math.max(hit.slices.end[hit.at] - hit.t, 1000);
    const { from, to } = this.view;
    if (hit.t < from || hit.t > to || length * this.view.scale < 12) this.view.fly(hit.t - 4 * length, hit.t + 5 * length);
    const { scrollTop, clientHeight } = this.lanes;
    if (band.y < scrollTop || band.y + ROW > scrollTop + clientHeight) this.lanes.scrollTop = band.y - clientHeight / 2;
  }

  // pointer and keys

  listen() {
    const { canvas, lanes } = this;
    lanes.addEventListener("scroll", () => this.later(), { passive: true });
    canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    canvas.addEventListener("pointerdown", (e) => this.press(e));
    canvas.addEventListener("pointermove", (e) => this.move(e));
    canvas.addEventListener("pointerup", (e) => this.release(e));
    canvas.addEventListener("pointercancel", () => this.drop());
    canvas.addEventListener("pointerleave", () => this.hideTip());
    canvas.addEventListener("dblclick", () => this.fitSelected());
    const overview = this.$("overview");
    overview.addEventListener("pointerdown", (e) => { overview.setPointerCapture(e.pointerId); this.centre(e); });
    overview.addEventListener("pointermove", (e) => { if (e.buttons) this.centre(e); });
    this.pressed = new Set();
    this.pointers = new Map();
    document.addEventListener("keydown", (e) => this.key(e));
    document.addEventListener("keyup", (e) => this.pressed.delete(e.key.toLowerCase()));
    window.addEventListener("blur", () => this.pressed.clear());
  }

  wheel(e) {
    const zooming = e.ctrlKey || e.metaKey || e.altKey;
    if (zooming) this.view.zoom(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0022)), this.inside(e));
    else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.view.pan(e.deltaX || e.deltaY);
    else return;
    e.preventDefault();
    this.hideTip();
  }

  inside(e) { return e.clientX - this.canvas.getBoundingClientRect().left - this.left; }

  press(e) {
    if (e.button) return;
    this.canvas.setPointerCapture(e.pointerId);
    this.pointers.set(e.pointerId, e.clientX);
    this.lanes.focus({ preventScroll: true });
    const t = this.view.t(this.inside(e));
    this.grip = { x: e.clientX, y: e.clientY, moved: false, t, measures: e.shiftKey };
  }

  move(e) {
    this.pointer = this.inside(e);
    if (this.pointers.size === 2 && this.pointers.has(e.pointerId)) return this.pinch(e);
    const grip = this.grip;
    if (!grip) return this.tip(e);
    if (Math.abs(e.clientX - grip.x) > 3) grip.moved = true;
    if (!grip.moved) return;
    this.hideTip();
    if (grip.measures) {
      this.state.measure = [grip.t, this.view.t(this.pointer)];
      this.later();
    } else {
      this.view.set(this.view.from + grip.t - this.view.t(this.pointer), this.view.to + grip.t - this.view.t(this.pointer));
    }
  }

  pinch(e) {
    const [a, b] = [...this.pointers.values()], before = Math.max(20, Math.abs(a - b));
    this.pointers.set(e.pointerId, e.clientX);
    const [c, d] = [...this.pointers.values()];
    const left = this.canvas.getBoundingClientRect().left + this.left;
    this.view.zoom(Math.max(20, Math.abs(c - d)) / before, (c + d) / 2 - left);
    if (this.grip) this.grip.moved = true;
  }

  release(e) {
    const grip = this.grip, measured = this.state.measure;
    this.drop();
    this.pointers.delete(e.pointerId);
    if (measured) this.view.fly(Math.min(...measured), Math.max(...measured));
    if (!grip || grip.moved) return;
    const box = this.canvas.getBoundingClientRect();
    const hit = this.at(e.clientX - box.left, e.clientY - box.top);
    this.choose(hit);
    if (hit.sync >= 0) this.hooks.opened(hit.sync);
  }

  drop() {
    this.grip = null;
    this.state.measure = null;
    this.pointers.clear();
    this.later();
  }

  centre(e) {
    const box = this.$("overview").getBoundingClientRect();
    const t = ((e.clientX - box.left - this.left) / this.view.width) * this.data.span, half = (this.view.to - this.view.from) / 2;
    this.view.flight++;
    this.view.set(t - half, t + half);
  }

  tip(e) {
    const box = this.canvas.getBoundingClientRect();
    const hit = this.at(e.clientX - box.left, e.clientY - box.top);
    const facts = this.facts(hit, hit.sync === undefined ? -1 : hit.sync), tip = this.$("tip");
    this.canvas.style.cursor = hit.sync >= 0 ? "pointer" : "crosshair";
    if (!facts) return this.hideTip();
    const name = document.createElement("strong");
    name.textContent = facts.name;
    tip.replaceChildren(name, ...facts.rows.map(([label, value]) => {
      const row = document.createElement("div");
      row.textContent = `${label} ${value}`;
      return row;
    }));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(e.clientX + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${e.clientY + height + 24 > innerHeight ? Math.max(4, e.clientY - height - 12) : e.clientY + 16}px`;
  }

  hideTip() { this.$("tip").hidden = true; }

  key(e) {
    const typing = e.target.closest("input[type=search], select, textarea");
    if (typing || e.ctrlKey || e.metaKey || e.altKey) return;
    const key = e.key.toLowerCase();
    const on = e.target === this.lanes;
    if ("wasd".includes(key) && key.length === 1) this.hold(key);
    else if (on && (key === "arrowleft" || key === "arrowright")) this.view.pan(key === "arrowleft" ? -80 : 80);
    else if (key === "+" || key === "=") this.view.zoom(1.5, this.view.width / 2);
    else if (key === "-") this.view.zoom(1 / 1.5, this.view.width / 2);
    else if (key === "n" || key === "p") this.step(key === "n" ? 1 : -1);
    else if (key === "f") this.fitSelected();
    else if (key === "0") this.view.fly(...this.view.home);
    else if (key === "enter" && on && this.state.sync >= 0) this.hooks.opened(this.state.sync);
    else if (key === "escape") this.choose({});
    else if (key === "/") this.$("find").focus();
    else if (key === "?") this.$("keys").click();
    else if (key === "o") this.$("overlay").click();
    else return;
    e.preventDefault();
  }

  /** Move for as long as the key is held, at a speed that doesn't depend on the keyboard's repeat rate. */
  hold(key) {
    const running = this.pressed.size > 0;
    this.pressed.add(key);
    if (running) return;
    let before = performance.now() - 16;
    const move = (now) => {
      const dt = Math.min(64, Math.max(0, now - before));
      before = now;
      const has = (k) => (this.pressed.has(k) ? 1 : 0);
      const zoom = has("w") - has("s"), pan = has("d") - has("a");
      const at = this.pointer >= 0 && this.pointer <= this.view.width ? this.pointer : this.view.width / 2;
      if (zoom) this.view.zoom(Math.exp(zoom * dt * 0.0045), at);
      if (pan) this.view.pan(pan * dt * 0.9);
      if (this.pressed.size) requestAnimationFrame(move);
    };
    move(performance.now());
  }
}

const RULER = 48;

/** A tick's time in the unit of the distance between ticks, so that neighbours never read alike. */
function exactly(t, step) {
  const [unit, scale] = step >= 1e9 ? ["s", 1e9] : step >= 1e6 ? ["ms", 1e6] : step >= 1e3 ? ["µs", 1e3] : ["ns", 1];
  const big = scale < 1e6 && Math.abs(t) >= 1e6 ? ["ms", 1e6] : [unit, scale];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / big[1])));
  return `${(t / big[1]).toFixed(digits)} ${big[0]}`;
}
