// Keys for the review form: 1, 2, 3 choose a label, h, m, l a severity, n goes to the notes, Ctrl+Enter saves.
// For collection: c copies the question, Ctrl+Enter saves the reply.
"use strict";
(() => {
  const form = document.querySelector("form.claim");
  if (form) {
    const choose = (name, value) => {
      const input = form.querySelector(`input[name="${name}"][value="${value}"]`);
      if (input) { input.checked = true; input.focus(); input.dispatchEvent(new Event("change", { bubbles: true })); }
    };
    document.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit(); return; }
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "TEXTAREA") return;
      const label = { 1: "SUPPORTED", 2: "CONTRADICTED", 3: "NOT_IN_KEY" }[event.key];
      const severity = { h: "high", m: "medium", l: "low" }[event.key];
      if (label) choose("label", label);
      else if (severity) choose("severity", severity);
      else if (event.key === "n") { event.preventDefault(); form.querySelector("textarea").focus(); }
      else if (event.key === "j" || event.key === "k") {
        const boxes = [...form.querySelectorAll('input[name="evidence"]')].filter((box) => box.offsetParent);
        const at = boxes.indexOf(document.activeElement);
        const next = boxes[event.key === "j" ? Math.min(at + 1, boxes.length - 1) : Math.max(at - 1, 0)];
        if (next) { event.preventDefault(); next.focus(); }
      }
    });
  }
  // j and k lead to the next and the previous trial; c copies.
  if (!form) {
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(TEXTAREA|INPUT)$/.test(event.target.tagName)) return;
      const link = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
    });
  }
  // Copy a text, say so, and go to the box for the reply. Without the script, the text can be selected.
  for (const button of document.querySelectorAll("button[data-copy]")) {
    const box = document.getElementById(button.dataset.copy);
    button.hidden = false;
    button.addEventListener("click", async () => {
      let done = true;
      try { await navigator.clipboard.writeText(box.value); }
      catch { box.select(); done = document.execCommand("copy"); }
      document.getElementById("copied").textContent = done ? "Copied." : "Not copied: select the text and copy it.";
      (done ? document.getElementById(button.dataset.then) : box).focus();
    });
  }
  const reply = document.querySelector("form.collect #reply");
  if (reply) {
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.repeat) return;
      event.preventDefault();
      reply.form.requestSubmit();
    });
  }
  // A mark in a reply opens the claim that it leads to.
  const openTarget = () => {
    const wanted = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = wanted && wanted.closest("details");
    if (folded) { folded.open = true; wanted.scrollIntoView({ block: "nearest" }); }
  };
  addEventListener("hashchange", openTarget);
  openTarget();
  // Progress of runs that go on.
  const live = [...document.querySelectorAll("[data-run]")];
  if (live.length) {
    const source = new EventSource("/events");
    source.onmessage = (event) => {
      const runs = JSON.parse(event.data);
      for (const shown of live) {
        const run = runs[shown.dataset.run];
        if (!run) continue;
        shown.textContent = run.progress;
        if (run.state !== "running") { source.close(); location.reload(); return; }
      }
    };
  }
})();
