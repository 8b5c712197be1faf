// A caisson sandbox as tools of the Vercel AI SDK: commands and files of the model stay in the sandbox.
import { jsonSchema, tool } from "ai";
import type { Sandbox } from "caisson-client";

const maxOutput = 32 << 10; // bytes of each stream that the model gets

function textFields<Name extends string>(fields: Record<Name, string>) {
  const properties = Object.fromEntries(
    Object.entries<string>(fields).map(([name, description]) => [name, { type: "string" as const, description }]),
  );
  return jsonSchema<Record<Name, string>>({
    type: "object",
    properties,
    required: Object.keys(fields),
    additionalProperties: false,
  });
}

export function sandboxTools(sandbox: Sandbox) {
  return {
    run: tool({
      description: "Run a shell command in a sandbox. Files last until the end of the conversation.",
      inputSchema: textFields({ command: "The command line, for sh -c." }),
      execute: async ({ command }) => {
        const result = await sandbox.run(command, { output_limit: maxOutput });
        const { outcome, exit_code, limit, stdout, stderr, denials } = result;
        return { outcome, exit_code, limit, stdout, stderr, denials: denials ?? [] };
      },
    }),
    read_file: tool({
      description: "Read a text file of the sandbox.",
      inputSchema: textFields({ path: "Relative to the workspace." }),
      execute: async ({ path }) => Buffer.from(await sandbox.files.read(path, { length: maxOutput })).toString("utf8"),
    }),
    write_file: tool({
      description: "Create or replace a file of the sandbox.",
      inputSchema: textFields({ path: "Relative to the workspace.", content: "The whole content." }),
      execute: async ({ path, content }) => ({ size: await sandbox.files.write(path, content) }),
    }),
  };
}
