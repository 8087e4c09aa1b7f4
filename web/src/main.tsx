/** The start of the app. */

import { render } from "preact";
import { App } from "./app";
import { applyTheme, readTheme } from "./theme";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/pages.css";

applyTheme(readTheme());
const place = document.getElementById("app");
if (place !== null) render(<App />, place);
