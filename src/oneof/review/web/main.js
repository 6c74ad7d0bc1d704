import { start } from "./app.js";
import { source } from "./server.js";

start(source);
