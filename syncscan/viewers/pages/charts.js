// Stands in for Google's chart loader: the PyTorch plugin's page waits for it before it shows any view.
window.google = {
  charts: {load: () => Promise.resolve(), setOnLoadCallback: done => done()},
  visualization: (() => {
    class Table {
      addColumn() {}
      addRows() {}
      setProperty() {}
    }
    class Chart {
      constructor(at) { this.at = at; }
      draw() { this.at.textContent = "This chart needs Google's chart loader from the internet; Trace View doesn't."; }
      clearChart() { this.at.textContent = ''; }
      setSelection() {}
      getSelection() { return []; }
    }
    const known = {DataTable: Table, arrayToDataTable: () => new Table(), events: {addListener() {}}};
    return new Proxy(known, {get: (all, name) => all[name] || Chart});
  })(),
};
