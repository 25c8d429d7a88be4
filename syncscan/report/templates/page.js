/* Brings the parts together: timeline, findings, toolbar, theme. */

(() => {
  const $ = (id) => document.getElementById(id);
  const data = readData($("data").textContent);
  const drawn = data.groups.length > 0;
  if (!drawn) for (const e of document.querySelectorAll(".tools, .view")) e.hidden = true;

  const icicle = data.host ? new Icicle(data.host) : null;
  const findings = new Findings({
    jump: (finding) => show(timeline ? timeline.worst(finding) : -1),
    jumpTo: (finding, ns) => show(data.syncs.start.findIndex((t, i) => t === ns && data.syncs.finding[i] === finding)),
    opened: (finding) => point(finding),
  });
  const timeline = drawn ? new Timeline(data, { opened: (sync) => findings.open(data.syncs.finding[sync]) }) : null;

  /** Bring the timeline into view and fly to a sync point. */
  function show(sync) {
    if (!timeline || sync < 0) return;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    document.querySelector(".timeline").scrollIntoView({ block: "start", behavior: calm ? "auto" : "smooth" });
    timeline.goto(sync);
    timeline.lanes.focus({ preventScroll: true });
  }

  /** Turn the timeline, wherever it is on the screen, to a finding's costliest sync point. */
  function point(finding) {
    const sync = timeline ? timeline.worst(finding) : -1;
    if (sync >= 0) timeline.goto(sync);
  }

  for (const link of document.querySelectorAll("[data-open]")) {
    link.addEventListener("click", (e) => {
      e.preventDefault();
      findings.open(Number(link.dataset.open));
      point(Number(link.dataset.open));
    });
  }

  if (timeline) {
    const find = $("find"), found = $("found");
    const tell = () => {
      const { hits, hit } = timeline;
      found.textContent = !find.value.trim() ? "" : !hits.length ? "no match" : hit < 0 ? `${hits.length} found` : `${hit + 1} of ${hits.length}`;
    };
    const next = (by) => { timeline.findNext(by); tell(); };
    find.addEventListener("input", () => { timeline.find(find.value); tell(); });
    find.addEventListener("keydown", (e) => {
      if (e.key === "Enter") next(e.shiftKey ? -1 : 1);
      else if (e.key === "Escape") { find.value = ""; timeline.find(""); tell(); timeline.lanes.focus(); }
    });
    $("find-next").addEventListener("click", () => next(1));
    $("find-prev").addEventListener("click", () => next(-1));
    $("sync-next").addEventListener("click", () => timeline.step(1));
    $("sync-prev").addEventListener("click", () => timeline.step(-1));
    $("sync-next").disabled = $("sync-prev").disabled = !data.syncs.start.length;
    $("zoom-in").addEventListener("click", () => timeline.view.zoom(2, timeline.view.width / 2));
    $("zoom-out").addEventListener("click", () => timeline.view.zoom(0.5, timeline.view.width / 2));
    places();
    if (data.replay) {
      $("overlay-label").hidden = $("legend-projected").hidden = false;
      $("overlay").addEventListener("change", () => {
        timeline.options.overlay = $("overlay").checked;
        timeline.relayout();
        timeline.resize();
      });
    }
  }
  $("keys").addEventListener("click", () => {
    $("keys-help").hidden = !$("keys-help").hidden;
    $("keys").setAttribute("aria-expanded", !$("keys-help").hidden);
  });

  function places() {
    const goto = $("goto");
    goto.append(new Option("go to …", ""), new Option("whole trace", "all"));
    data.steps.slice(0, 200).forEach(([number], i) => goto.append(new Option(`step ${number}`, String(i))));
    goto.addEventListener("change", () => {
      if (goto.value === "all") timeline.view.fly(0, data.length);
      else if (goto.value) {
        const [, start, end] = data.steps[Number(goto.value)], pad = (end - start) / 50;
        timeline.view.fly(start - pad, end + pad);
      }
      goto.value = "";
    });
  }

  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => { if (timeline) { timeline.palette.read(); timeline.draw(); } };
  $("theme").addEventListener("click", () => {
    const now = root.style.colorScheme || (dark.matches ? "dark" : "light");
    root.style.colorScheme = now === "dark" ? "light" : "dark";
    repaint();
  });
  dark.addEventListener("change", repaint);
  const paper = (on) => {
    root.style.colorScheme = on ? "light" : before;
    $("timeline").style.width = on ? "700px" : "";
    if (timeline) { timeline.palette.read(); timeline.resize(); }
  };
  let before = "";
  addEventListener("beforeprint", () => { before = root.style.colorScheme; paper(true); });
  addEventListener("afterprint", () => paper(false));

  window.syncscan = { timeline, findings, icicle, data };
})();
