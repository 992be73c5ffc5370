// A page with one map, or with several: each element with the class "map" holds its data as JSON.

const maps = [...document.querySelectorAll(".map")].map((container) => {
  const data = JSON.parse(container.querySelector("script").textContent);
  return [container, data];
});
Promise.all(maps.map(([container, data]) => {
  const options = maps.length > 1 ? {} : { keyTarget: document };
  return createViewer(container, data, options).ready;
})).then(() => { document.body.dataset.ready = "yes"; });
