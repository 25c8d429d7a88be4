/* The step that is drawn a second time, hatched, from a replay without some syncs: which, and in words. */

class Replayed {
  /** timeline: it is drawn in that one's lanes, and in its own canvases. */
  constructor(timeline) {
    this.timeline = timeline;
    this.steps = timeline.data.without;
    this.$ = (id) => document.getElementById(id);
    /** Whether the reader chose to see none. */
    this.none = false;
    /** Whether a habit is chosen, without which no step is drawn. */
    this.habit = false;
    this.take(this.first);
    this.field();
    this.$("legend-projected").hidden = !this.steps.length;
    this.$("without").addEventListener("change", (e) => this.draw(e.target.value));
    this.$("replay-show").addEventListener("click", () => this.show());
  }

  /** The number, as text, of the step without all syncs; or empty. */
  get first() { return this.steps.length ? "0" : ""; }

  /** The field that chooses a step stands beside all lanes, in which alone it is drawn. */
  field() { this.$("without-field").hidden = !this.steps.length || !this.timeline.options.all; }

  take(number) {
    const replay = number === "" ? null : this.steps[Number(number)];
    this.timeline.options.replay = this.timeline.painter.replay = replay;
    this.$("without").value = number;
  }

  /** Draw a replay, by its number as text, or none, as the reader asks. */
  draw(number) {
    this.none = number === "";
    this.take(number);
    this.timeline.relayout();
    this.timeline.resize();
  }

  /** Draw the step without what was chosen, by its number as text, or without all syncs; not if the reader wants none. */
  without(number, habit) {
    this.habit = habit;
    if (this.steps.length && !this.none) this.draw(number || this.first);
    else this.timeline.later();
  }

  toggle() {
    if (!this.steps.length) return;
    this.timeline.show(true);
    this.draw(this.timeline.options.replay ? "" : "0");
  }

  show() {
    const { start, end, recorded } = this.timeline.options.replay, until = Math.max(end, recorded), pad = (until - start) / 50;
    this.timeline.view.fly(start - pad, until + pad);
  }

  /** Which step is hatched and what it is without, or why there is none. */
  sentence() {
    const { replay } = this.timeline.options;
    return replay ? `Hatched: ${replay.of} ${replay.name}, projected.` : this.timeline.data.why_none || "As recorded: no projection is drawn.";
  }

  /** In words: the step that is hatched, and whether it is in view. */
  tell() {
    const { replay } = this.timeline.options, away = replay !== null && !overlaps(replay, this.timeline.view);
    const said = [this.habit && replay ? "What a habit costs isn't drawn." : "", this.sentence()].filter(Boolean).join(" ");
    if (this.$("replay-said").textContent !== said) this.$("replay-said").textContent = said;
    this.$("replay-untold").textContent = replay ? replay.untold : "";
    this.$("replay-away").hidden = !away;
  }
}
