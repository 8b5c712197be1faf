// Runs the published AI SDK with its mock model and a real sandbox.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { generateText, isStepCount } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { Sandbox } from "caisson-client";

import { sandboxTools } from "./sandbox_tools.ts";

type Step = { tool: string; input: object } | { text: string };

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

/** A model that calls these tools, one per step. */
function scripted(steps: Step[]): MockLanguageModelV4 {
  return new MockLanguageModelV4({
    doGenerate: steps.map((step, index) =>
      "tool" in step
        ? {
            content: [
              { type: "tool-call", toolCallId: `call-${index}`, toolName: step.tool, input: JSON.stringify(step.input) },
            ],
            finishReason: { unified: "tool-calls", raw: undefined },
            usage,
            warnings: [],
          }
        : {
            content: [{ type: "text", text: step.text }],
            finishReason: { unified: "stop", raw: undefined },
            usage,
            warnings: [],
          },
    ),
  });
}

let sandbox: Sandbox;
before(async () => {
  sandbox = await Sandbox.create();
});
after(() => sandbox.destroy());

test("ModelWritesRunsAndReadsInTheSandbox", async () => {
  const model = scripted([
    { tool: "write_file", input: { path: "sum.py", content: "open('sum', 'w').write(str(6 * 7)); print('done')" } },
    { tool: "run", input: { command: "python3 sum.py" } },
    { tool: "read_file", input: { path: "sum" } },
    { text: "42" },
  ]);
  const result = await generateText({
    model,
    tools: sandboxTools(sandbox),
    stopWhen: isStepCount(5),
    prompt: "Compute 6 * 7.",
  });
  assert.equal(result.text, "42");
  const outputs = result.steps.flatMap((step) => step.toolResults.map((one) => one.output));
  assert.equal(outputs.length, 3);
  const run = outputs[1] as { stdout: string; exit_code: number };
  assert.deepEqual([run.stdout, run.exit_code], ["done\n", 0]);
  assert.equal(outputs[2], "42");
  // The input of the model in its last step.
  assert.match(JSON.stringify(model.doGenerateCalls.at(-1)?.prompt), /done\\n/);
});

test("RefusedToolCallIsAnErrorForTheModel", async () => {
  const model = scripted([{ tool: "read_file", input: { path: "../../etc/shadow" } }, { text: "sorry" }]);
  const result = await generateText({ model, tools: sandboxTools(sandbox), stopWhen: isStepCount(3), prompt: "Read it." });
  assert.equal(result.text, "sorry");
  assert.deepEqual(result.steps[0]?.content.map((part) => part.type).filter((type) => type !== "tool-call"), ["tool-error"]);
});
