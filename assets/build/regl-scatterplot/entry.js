// What the map needs of the library, and nothing else.
export { checkSupport, createSpatialIndex, default as createScatterplot } from "regl-scatterplot";
