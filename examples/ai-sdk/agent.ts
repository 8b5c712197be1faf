// node agent.ts MODEL PROMPT: an agent that works in a sandbox. MODEL is a model name of the AI SDK's gateway.
import { isStepCount, ToolLoopAgent } from "ai";
import { Sandbox } from "caisson-client";

import { sandboxTools } from "./sandbox_tools.ts";

const [model = "", ...words] = process.argv.slice(2);
const sandbox = await Sandbox.create();
try {
  const agent = new ToolLoopAgent({ model, tools: sandboxTools(sandbox), stopWhen: isStepCount(20) });
  console.log((await agent.generate({ prompt: words.join(" ") })).text);
} finally {
  await sandbox.destroy();
}
