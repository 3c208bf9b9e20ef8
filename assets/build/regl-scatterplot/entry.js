// What the map needs of the library, and nothing else.
export { createRenderer, createSpatialIndex, default as createScatterplot } from "regl-scatterplot";
