// From a weight to a color: one hue, whose lightness changes in equal steps (OKLab, Ottosson 2020).

const RAMP_STEPS = 256;
const LIGHT_RAMP = buildRamp({ from: 0.972, to: 0.3, chroma: 0.15, hues: [244, 264], bend: 0.8 });
const DARK_RAMP = buildRamp({ from: 0.25, to: 0.955, chroma: 0.14, hues: [258, 226], bend: 0.93 });

function buildRamp({ from, to, chroma, hues, bend }) { // colors as [red, green, blue]
  return range(RAMP_STEPS).map((n) => {
    const t = n / (RAMP_STEPS - 1);
    const angle = (hues[0] + (hues[1] - hues[0]) * t) * Math.PI / 180;
    const strength = 0.006 + chroma * Math.sin(bend * Math.PI * t); // most in the middle, where sRGB has room
    return toRgb(from + (to - from) * t, strength * Math.cos(angle), strength * Math.sin(angle));
  });
}

function toRgb(lightness, a, b) { // OKLab to sRGB, clipped
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((x) => Math.round(255 * clamp(x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055, 0, 1)));
}

// Position on the ramp: the square root of the weight, so that small weights are visible.
const rampPosition = (weight, top) => Math.sqrt(clamp(weight / top, 0, 1));
const rampColor = (theme, position) => theme.ramp[Math.round(position * (RAMP_STEPS - 1))];
const css = ([red, green, blue]) => `rgb(${red},${green},${blue})`;
const weightColor = (theme, weight, top) => css(rampColor(theme, rampPosition(weight, top)));

function inkOn(theme, weight, top) { // black or white, whichever is easier to read on this weight's color
  const [red, green, blue] = rampColor(theme, rampPosition(weight, top)).map((x) => (x / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000" : "#fff";
}

function scaleTicks(top) { // weights to label, far enough apart
  const steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
  const ticks = [0];
  for (const tick of steps) {
    const position = rampPosition(tick, top);
    if (tick < top && position - rampPosition(ticks.at(-1), top) >= 0.19 && position < 0.8) ticks.push(tick);
  }
  return [...ticks, top];
}

function drawScale(parent, { theme, top, even, x = 0, y = 0, width = 260, colors = null, title = "Weight" }) {
  const group = svg("g", { transform: `translate(${x} ${y})`, "font-size": 12 }, parent);
  const isEvenLeft = even && even < top && rampPosition(even, top) < 0.5;
  svg("text", { x: isEvenLeft ? width : 0, y: 11, "text-anchor": isEvenLeft ? "end" : "start", fill: theme.faint }, group, title);
  const cells = 64;
  const color = colors ?? ((position) => css(rampColor(theme, position)));
  for (const n of range(cells)) {
    svg("rect", { x: (n * width) / cells, y: 18, width: width / cells + 0.5, height: 10, fill: color((n + 0.5) / cells) }, group);
  }
  svg("rect", { x: 0, y: 18, width, height: 10, fill: "none", stroke: theme.line }, group);
  for (const tick of scaleTicks(top)) {
    const at = rampPosition(tick, top) * width;
    const anchor = tick === 0 ? "start" : tick === top ? "end" : "middle";
    svg("line", { x1: at, x2: at, y1: 28, y2: 32, stroke: theme.faint }, group);
    svg("text", { x: at, y: 44, "text-anchor": anchor, fill: theme.faint }, group, percent(tick).replace(/\.0 /, " "));
  }
  if (even && even < top) {
    const at = rampPosition(even, top) * width;
    svg("path", { d: `M${at - 4},10 L${at + 4},10 L${at},16 Z`, fill: theme.ink }, group);
    svg("text", { x: isEvenLeft ? at + 8 : at - 8, y: 11, "text-anchor": isEvenLeft ? "start" : "end", fill: theme.faint }, group, `even: ${percent(even)}`);
  }
  return group;
}
