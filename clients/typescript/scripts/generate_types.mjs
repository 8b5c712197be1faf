// Writes src/api.ts from the server's OpenAPI document.
//
//   curl --unix-socket SOCKET http://localhost/v1/openapi.json | node scripts/generate_types.mjs > src/api.ts
import { readFileSync } from "node:fs";

const document = JSON.parse(readFileSync(0, "utf8"));
const lines = [];

function typeOf(schema, indent) {
  if (schema === undefined) return "unknown";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map((one) => typeOf(one, indent)).join(" | ");
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type }, indent)).join(" | ");
  switch (schema.type) {
    case "string": return "string";
    case "integer":
    case "number": return "number";
    case "boolean": return "boolean";
    case "null": return "null";
    case "array": return arrayOf(typeOf(schema.items, indent));
    case "object": return objectOf(schema, indent);
    default: return "unknown";
  }
}

function arrayOf(item) {
  return /^[\w.]+$/.test(item) ? `${item}[]` : `Array<${item}>`;
}

function objectOf(schema, indent) {
  if (schema.properties) return `{\n${membersOf(schema, indent + "  ")}${indent}}`;
  const value = typeof schema.additionalProperties === "object" ? typeOf(schema.additionalProperties, indent) : "unknown";
  return `Record<string, ${value}>`;
}

function membersOf(schema, indent) {
  let text = "";
  for (const [name, member] of Object.entries(schema.properties)) {
    if (member.description) text += `${indent}/** ${member.description} */\n`;
    const type = typeOf(member, indent);
    text += `${indent}${name}${schema.required?.includes(name) ? `: ${type}` : `?: ${type} | undefined`};\n`;
  }
  return text;
}

function declare(name, schema) {
  if (schema.properties) lines.push(`export interface ${name} {`, membersOf(schema, "  ") + "}", "");
  else lines.push(`export type ${name} = ${typeOf(schema, "")};`, "");
}

function upper(name) {
  return name[0].toUpperCase() + name.slice(1);
}

/** Returns the schema of an object with the query parameters. */
function queryOf(operation) {
  const parameters = (operation.parameters ?? []).filter((one) => one.in === "query");
  if (parameters.length === 0) return undefined;
  return {
    properties: Object.fromEntries(parameters.map((one) => [one.name, { ...one.schema, description: one.description }])),
    required: parameters.filter((one) => one.required).map((one) => one.name),
  };
}

function resultOf(operation) {
  const [, success] = Object.entries(operation.responses).find(([status]) => /^[12]/.test(status)) ?? [];
  const content = success?.content?.["application/json"];
  return content ? typeOf(content.schema, "") : "undefined";
}

lines.push("// Generated from the server's OpenAPI document by scripts/generate_types.mjs.", "");
for (const [name, schema] of Object.entries(document.components.schemas)) declare(name, schema);

const operations = [];
for (const [path, methods] of Object.entries(document.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const id = operation.operationId;
    const body = operation.requestBody?.content?.["application/json"]?.schema;
    const query = queryOf(operation);
    if (body) declare(`${upper(id)}Body`, body);
    if (query) declare(`${upper(id)}Query`, query);
    const parameters = (operation.parameters ?? []).filter((one) => one.in === "path").map((one) => `${one.name}: string`);
    const types = [`result: ${resultOf(operation)}`];
    if (parameters.length > 0) types.push(`path: { ${parameters.join("; ")} }`);
    if (query) types.push(`query: ${upper(id)}Query`);
    if (body) types.push(`body: ${upper(id)}Body`);
    operations.push({ id, method: method.toUpperCase(), path, types, summary: operation.summary });
  }
}
lines.push("/** Input and result of each operation. */", "export interface Operations {");
for (const one of operations) lines.push(`  /** ${one.summary} */`, `  ${one.id}: { ${one.types.join("; ")} };`);
lines.push("}", "", "/** Method and path of each operation. */");
lines.push("export const routes: { readonly [Id in keyof Operations]: readonly [method: string, path: string] } = {");
for (const one of operations) lines.push(`  ${one.id}: ["${one.method}", "${one.path}"],`);
lines.push("};");
process.stdout.write(lines.join("\n") + "\n");
