/* The step that is drawn a second time, hatched, from the replay without some syncs: which one, and what is said of it. */

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
    this.take(this.steps.length ? "0" : "");
    this.$("without-field").hidden = this.$("legend-projected").hidden = !this.steps.length;
    this.$("without").addEventListener("change", (e) => this.draw(e.target.value));
    this.$("replay-show").addEventListener("click", () => this.show());
  }

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
    if (this.steps.length && !this.none) this.draw(number || "0");
    else this.timeline.later();
  }

  toggle() {
    if (this.steps.length) this.draw(this.timeline.options.replay ? "" : "0");
  }

  show() {
    const { start, end, recorded } = this.timeline.options.replay, until = Math.max(end, recorded), pad = (until - start) / 50;
    this.timeline.view.fly(start - pad, until + pad);
  }

  /** In words: which step is hatched and what it is without, or why there is none; and whether it is in view. */
  tell() {
    const { replay } = this.timeline.options, away = replay !== null && !overlaps(replay, this.timeline.view);
    const said = [
      this.habit && replay ? "Projections are drawn for syncs only." : "",
      replay ? `Hatched: ${replay.of} without ${replay.name}, projected.` : this.timeline.data.why_none || "As recorded: no projection is drawn.",
    ].filter(Boolean).join(" ");
    if (this.$("replay-said").textContent !== said) this.$("replay-said").textContent = said;
    this.$("replay-untold").textContent = replay ? replay.untold : "";
    this.$("replay-away").hidden = !away;
  }
}
