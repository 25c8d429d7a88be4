"use strict";

/* From the packed columns of the page's data to typed arrays, sorted for drawing. */

/** Numbers packed as base64 of variable-length integers (see packed.py); summed up if they were stored as differences. */
function unpack(text, delta = false) {
  const bytes = atob(text);
  const out = new Float64Array(bytes.length);
  let n = 0, value = 0, unit = 1, sum = 0;
  for (let i = 0; i < bytes.length; i++) {
    const b = bytes.charCodeAt(i);
    value += (b & 127) * unit;
    if (b & 128) { unit *= 128; continue; }
    out[n++] = delta ? (sum += value) : value;
    value = 0;
    unit = 1;
  }
  return out.slice(0, n);
}

/**
 * The slices of one lane, one set of arrays a row: `start` and `end` ascend, since the slices of a row don't overlap;
 * `sum[i]` is how long those before i last together. Device work has its call's begin in `launch`, -1 if unknown.
 */
function rowsOf(lane) {
  const start = unpack(lane.start, true), dur = unpack(lane.dur), name = unpack(lane.name);
  const row = unpack(lane.row), what = unpack(lane.what), lag = lane.lag === undefined ? null : unpack(lane.lag);
  const counts = new Uint32Array(lane.rows);
  for (const r of row) counts[r]++;
  const rows = Array.from(counts, (n) => ({
    start: new Float64Array(n), end: new Float64Array(n), sum: new Float64Array(n + 1),
    name: new Uint32Array(n), what: new Uint8Array(n), launch: lag ? new Float64Array(n) : null,
  }));
  counts.fill(0);
  for (let i = 0; i < start.length; i++) {
    const into = rows[row[i]], k = counts[row[i]]++;
    into.start[k] = start[i];
    into.end[k] = start[i] + dur[i];
    into.sum[k + 1] = into.sum[k] + dur[i];
    into.name[k] = name[i];
    into.what[k] = what[i];
    if (lag) into.launch[k] = lag[i] ? start[i] - lag[i] : -1;
  }
  return rows;
}

/** The first index from `lo` on whose value is at least `x`, in an ascending array. */
function lowerBound(array, x, lo = 0) {
  let hi = array.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (array[mid] < x) lo = mid + 1; else hi = mid;
  }
  return lo;
}

/** The first index whose value is greater than `x`. */
function upperBound(array, x) {
  let lo = 0, hi = array.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (array[mid] <= x) lo = mid + 1; else hi = mid;
  }
  return lo;
}

/** Everything the timeline draws, from the page's JSON. */
function readData(json) {
  const data = JSON.parse(json);
  for (const group of data.groups) {
    for (const lane of group.lanes) {
      lane.slices = rowsOf(lane);
      lane.busy = lane.busy ? Uint8Array.from(atob(lane.busy), (c) => c.charCodeAt(0)) : null;
    }
  }
  if (data.python) data.python = { ...data.python, start: unpack(data.python.start, true), dur: unpack(data.python.dur), name: unpack(data.python.name) };
  data.syncs = readSyncs(data.syncs);
  for (const replay of data.without) readReplay(data, replay);
  return data;
}

/** What a projected step holds, by lane; `lane.twice` says that a lane is in any of them. */
function readReplay(data, replay) {
  replay.slices = new Map();
  for (const packed of replay.lanes) {
    const start = unpack(packed.start, true), dur = unpack(packed.dur), sum = new Float64Array(start.length + 1);
    if (!start.length) continue;
    dur.forEach((d, i) => { sum[i + 1] = sum[i] + d; });
    const lane = data.groups[packed.group].lanes[packed.lane];
    lane.twice = true;
    replay.slices.set(lane, { start, end: start.map((t, i) => t + dur[i]), sum, name: unpack(packed.name), what: new Uint8Array(start.length) });
  }
}

function readSyncs(packed) {
  const none = { start: "", dur: "", wait: "", bubble: "", finding: "", group: "" };
  const from = packed || { ...none, idle: { start: "", dur: "", sync: "", group: "" } };
  const start = unpack(from.start, true);
  const idleStart = unpack(from.idle.start, true);
  const ends = (starts, durations) => starts.map((t, i) => t + durations[i]);
  return {
    start, end: ends(start, unpack(from.dur)), wait: unpack(from.wait), bubble: unpack(from.bubble),
    finding: unpack(from.finding), group: unpack(from.group),
    idle: {
      start: idleStart, end: ends(idleStart, unpack(from.idle.dur)),
      sync: unpack(from.idle.sync), group: unpack(from.idle.group),
    },
  };
}

/** A time in ns with three digits and the unit that fits it. */
function duration(ns) {
  const size = Math.abs(ns);
  if (size === 0) return "0";
  const [unit, scale] = size >= 999.5e6 ? ["s", 1e9] : size >= 999.5e3 ? ["ms", 1e6] : size >= 999.5 ? ["µs", 1e3] : ["ns", 1];
  const value = ns / scale;
  const digits = scale === 1 ? 0 : Math.max(0, 3 - String(Math.trunc(Math.abs(value))).length);
  return value.toFixed(digits) + "\u00a0" + unit;
}
