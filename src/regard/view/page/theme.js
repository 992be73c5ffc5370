// Colors of the current theme, as values for a canvas or a saved picture.

function readTheme(container) {
  const style = getComputedStyle(container);
  const value = (name, fallback) => style.getPropertyValue(`--${name}`).trim() || fallback;
  const theme = {
    ground: value("ground", "#ffffff"), panel: value("panel", "#f6f7f8"), ink: value("ink", "#16191d"),
    faint: value("faint", "#5b636e"), line: value("line", "#d9dde2"), accent: value("accent", "#0b6b8a"),
    mark: value("mark", "#b54708"), font: value("font", "sans-serif"),
  };
  theme.isDark = lightness(theme.ground) < 0.5;
  theme.ramp = theme.isDark ? DARK_RAMP : LIGHT_RAMP;
  return theme;
}

function lightness(hex) { // of #rgb or #rrggbb, from 0 to 1
  const digits = hex.replace("#", "");
  const size = digits.length === 3 ? 1 : 2;
  const parts = [0, 1, 2].map((n) => parseInt(digits.slice(n * size, (n + 1) * size).padEnd(2, digits[n * size]), 16) / 255);
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}

function toggleTheme() {
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const current = root.dataset.theme || (prefersDark ? "dark" : "light");
  root.dataset.theme = current === "dark" ? "light" : "dark";
}

function watchTheme(onChange) { // returns a function that ends it
  const query = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(onChange);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  query.addEventListener("change", onChange);
  return () => { observer.disconnect(); query.removeEventListener("change", onChange); };
}
