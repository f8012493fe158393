// Starts reveal.js, and adds what it doesn't have: a bar of links, and a key for light or dark mode.
"use strict";
(() => {
  const root = document.documentElement;
  const received = /receiver/i.test(location.search); // a preview inside the speaker view

  Reveal.initialize({
    width: 1280,
    height: 720,
    margin: 0.06,
    center: false,
    hash: true,
    slideNumber: "c/t",
    transition: "none",
    backgroundTransition: "none",
    display: "flex",
    pdfSeparateFragments: false,
    pdfMaxPagesPerSlide: 1,
    scrollActivationWidth: 435,
    plugins: [RevealNotes],
  });

  const switchTheme = () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  };
  Reveal.addKeyBinding({ keyCode: 68, key: "D", description: "Light or dark" }, switchTheme);

  const bar = document.querySelector(".deck-bar");
  const commands = {
    speaker: () => Reveal.getPlugin("notes").open(),
    theme: switchTheme,
    overview: () => Reveal.toggleOverview(),
  };
  bar.hidden = received;
  bar.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    commands[button.dataset.do]();
    button.blur(); // so that the space bar goes on to the next slide
  });
})();
