// Flip through the frames of dlcore.explore when a reader moves a control.
document.querySelectorAll(".explore").forEach((figure) => {
  const frames = JSON.parse(figure.querySelector("script").textContent);
  const image = figure.querySelector("img");
  const controls = [...figure.querySelectorAll("input, select")];
  const button = figure.querySelector("button");

  const show = () => {
    let k = 0;
    for (const control of controls) {
      k = k * Number(control.dataset.size) + Number(control.value);
      if (control.type === "range") {
        const text = JSON.parse(control.dataset.texts)[control.value];
        control.nextElementSibling.textContent = text;
        control.setAttribute("aria-valuetext", text);
      }
    }
    image.src = frames[k].src;
    image.alt = frames[k].alt;
  };
  controls.forEach((control) => control.addEventListener("input", show));
  show(); // a browser that restores the form on reload keeps picture and slider together

  if (!button) return;
  const slider = controls.find((control) => control.type === "range");
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.textContent = "Play";
  };
  button.addEventListener("click", () => {
    if (timer) return stop();
    if (slider.value === slider.max) slider.value = 0;
    show();
    button.textContent = "Pause";
    timer = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      show();
      if (slider.value === slider.max) stop();
    }, Number(button.dataset.ms));
  });
  slider.addEventListener("pointerdown", stop);
  slider.addEventListener("keydown", stop);
});
