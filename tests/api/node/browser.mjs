// browser.mjs: opens the pages named in standard input with a headless Chromium, and prints the results as JSON.
//   {"chromium": PATH, "page": URL, "raw": URL, "headers": {}, "cookies": []}
import { chromium } from "playwright-core";

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const task = JSON.parse(Buffer.concat(chunks).toString());
const browser = await chromium.launch({ executablePath: task.chromium, headless: true, args: ["--no-sandbox", "--disable-popup-blocking"] });
try {
  const context = await browser.newContext({ extraHTTPHeaders: task.headers, acceptDownloads: true });
  if (task.cookies.length > 0) await context.addCookies(task.cookies);
  const page = await context.newPage();
  await page.goto(task.page, { waitUntil: "load", timeout: 60_000 });
  const results = await page.evaluate(() => window.results);
  // The raw view of a page that the sandbox wrote is downloaded, never displayed.
  const raw = await context.newPage();
  const download = raw.waitForEvent("download", { timeout: 20_000 }).then((one) => one.suggestedFilename(), () => "");
  const status = await raw.goto(task.raw, { timeout: 20_000 }).then((one) => one?.status() ?? 0, () => 0);
  const shown = await raw.evaluate(() => document.title + document.body.innerText).catch(() => "");
  const cookies = (await context.cookies()).map((one) => `${one.domain} ${one.name}`);
  console.log(JSON.stringify({ results, raw: { download: status >= 400 ? "" : await download, status, shown }, cookies }));
} finally {
  await browser.close();
}
