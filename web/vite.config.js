import { defineConfig } from "vite";

export default defineConfig({
  // Addresses are relative, so that a proxy may serve the app below a path.
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/omnigraph/server/built_app",
    emptyOutDir: true,
    // The policy of the page allows no inline script and no data: address.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    reportCompressedSize: false,
  },
  server: { proxy: { "/graphs": "http://127.0.0.1:8080", "/session": "http://127.0.0.1:8080" } },
});
