"use strict";
(async () => {
  const plots = [...document.querySelectorAll(".plot")];
  const unpack = async (id) => {
    const packed = atob(document.getElementById(id).textContent);
    const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const ink = () => ({
    "font.color": colour("--soft"),
    "modebar.color": colour("--soft"),
    "modebar.activecolor": colour("--mark"),
    "modebar.bgcolor": "rgba(0,0,0,0)",
  });
  // The legend below everything, as wide as the page; on a phone, narrow margins too.
  const fitted = (layout, width) => ({
    ...layout,
    font: { ...layout.font, ...(width < 560 && { size: 11 }) },
    margin: { ...layout.margin, ...(width < 560 && { l: 40, r: 8 }) },
    legend: { ...layout.legend, orientation: "h", x: 0, y: 0, xref: "container", yref: "container", yanchor: "bottom" },
  });
  const draw = async () => {
    const script = document.createElement("script");
    script.textContent = await unpack("plotly");
    document.head.append(script);
    const figures = JSON.parse(await unpack("figures"));
    for (const [i, plot] of plots.entries()) {
      const { data, layout } = figures[i];
      plot.textContent = "";
      plot.style.minHeight = 0;
      const all = { height: 420, ...fitted(layout, plot.clientWidth) };
      await Plotly.newPlot(plot, data, all, {
        responsive: true,
        displaylogo: false,
        displayModeBar: plot.clientWidth < 560 ? false : "hover",
        modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
      });
      await Plotly.relayout(plot, ink());
    }
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      for (const plot of plots) Plotly.relayout(plot, ink());
    });
  };
  try {
    if (plots.length) await draw();
    document.documentElement.dataset.plots = "drawn";
  } catch (error) {
    for (const plot of plots) {
      if (!plot.querySelector("svg")) plot.textContent = "This browser cannot draw the plot.";
    }
    throw error;
  }
})();
