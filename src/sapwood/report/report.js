"use strict";
(function () {
  const theme = document.getElementById("theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  theme.hidden = false;
  theme.addEventListener("click", function () {
    const now = document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  });
  document.querySelectorAll(".picker").forEach(function (picker) {
    const blocks = Array.from(picker.querySelectorAll("details.pick"));
    const select = document.createElement("select");
    select.setAttribute("aria-label", "Choose a " + picker.dataset.what);
    blocks.forEach(function (block, k) { select.add(new Option(block.dataset.name, k)); });
    function show(k) {
      select.value = String(k);
      blocks.forEach(function (block, other) { block.hidden = other !== k; block.open = other === k; });
    }
    function button(text, label, step) {
      const one = document.createElement("button");
      one.type = "button"; one.textContent = text; one.setAttribute("aria-label", label);
      one.addEventListener("click", function () {
        show((Number(select.value) + step + blocks.length) % blocks.length);
      });
      return one;
    }
    select.addEventListener("change", function () { show(Number(select.value)); });
    const bar = document.createElement("div");
    bar.className = "chooser";
    bar.append(button("‹", "Previous " + picker.dataset.what, -1), select, button("›", "Next " + picker.dataset.what, 1));
    picker.prepend(bar);
    picker.classList.add("live");
    show(0);
    window.addEventListener("beforeprint", function () { blocks.forEach(function (b) { b.hidden = false; b.open = true; }); });
    window.addEventListener("afterprint", function () { show(Number(select.value)); });
  });
})();
