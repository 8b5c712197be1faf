// File names, which are bytes, as text. Bytes that are not UTF-8 become lone surrogates (U+DC80 to U+DCFF), as with
// Python's surrogateescape, so that every name can be sent back.

const utf8OrByte = new RegExp(
  [
    "[\\x00-\\x7f]+",
    "[\\xc2-\\xdf][\\x80-\\xbf]",
    "\\xe0[\\xa0-\\xbf][\\x80-\\xbf]",
    "[\\xe1-\\xec\\xee\\xef][\\x80-\\xbf]{2}",
    "\\xed[\\x80-\\x9f][\\x80-\\xbf]",
    "\\xf0[\\x90-\\xbf][\\x80-\\xbf]{2}",
    "[\\xf1-\\xf3][\\x80-\\xbf]{3}",
    "\\xf4[\\x80-\\x8f][\\x80-\\xbf]{2}",
    "([\\x80-\\xff])",
  ].join("|"),
  "g",
);

/** With the flag u, only lone surrogates match. */
const lone = /([\udc80-\udcff])/u;

function decodeBytes(bytes: Buffer): string {
  return bytes.toString("latin1").replace(utf8OrByte, (text, byte?: string) =>
    byte === undefined ? Buffer.from(text, "latin1").toString("utf8") : String.fromCharCode(0xdc00 + byte.charCodeAt(0)));
}

/** The parts of a text; every second part is the byte of a lone surrogate. */
function split(text: string): Array<string | number> {
  return text.split(lone).map((part, index) => (index % 2 === 0 ? part : part.charCodeAt(0) - 0xdc00));
}

/** A value with the name, path or list of paths in this member as text. */
export function decodePath<Value extends object>(value: Value, member: string): Value {
  const { [`${member}_encoding`]: encoding, ...rest } = value as Record<string, unknown>;
  if (encoding !== "base64") return rest as Value;
  const decode = (text: unknown): string => decodeBytes(Buffer.from(String(text), "base64"));
  const found = rest[member];
  return { ...rest, [member]: Array.isArray(found) ? found.map(decode) : decode(found) } as Value;
}

function encodeName(text: string): string {
  const bytes = split(text).map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.of(part)));
  return Buffer.concat(bytes).toString("base64");
}

/** Paths and lists of paths as fields of a request; if one of them is not UTF-8, all are sent as base64. */
export function encodePaths<Paths extends { [Name in keyof Paths]: string | string[] | undefined }>(
  paths: Paths,
): Paths & { encoding?: "base64" } {
  const given = Object.entries(paths) as Array<[string, string | string[] | undefined]>;
  if (!given.some(([, value]) => (value === undefined ? [] : [value].flat()).some((text) => lone.test(text)))) return paths;
  const encoded = given.map(([name, value]) => [name, Array.isArray(value) ? value.map(encodeName) : value && encodeName(value)]);
  return { ...(Object.fromEntries(encoded) as Paths), encoding: "base64" };
}

/** Like encodeURIComponent(), but accepts lone surrogates. */
export function percentEncode(text: string): string {
  return split(text).map((part) => (typeof part === "string" ? encodeURIComponent(part) : `%${part.toString(16)}`)).join("");
}
