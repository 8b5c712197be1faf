#!/usr/bin/python3
"""An agent for the tests: calls the model once, prints what it can read, changes the project, exits with 7."""
import json
import os
import pathlib
import urllib.error
import urllib.request

key = os.environ.get("ANTHROPIC_API_KEY", "")
print("variable:", key)
request = urllib.request.Request(
    os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", data=json.dumps({"messages": [], "tools": []}).encode(),
    headers={"x-api-key": key, "content-type": "application/json"})
print("model:", "The script has ended." in urllib.request.urlopen(request, timeout=30).read().decode())
try:
    urllib.request.urlopen("http://www.example.org/", timeout=10)
    print("other host: reached")
except (urllib.error.URLError, OSError):
    print("other host: refused")
for path in sorted(pathlib.Path.home().rglob("*")):
    if path.is_file() and path.parts[3].startswith("."):
        print("home:", path.relative_to(pathlib.Path.home()), path.read_text(errors="replace").strip())
for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
    try:
        print("process:", path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    except OSError:
        pass
print("directory:", os.getcwd())
pathlib.Path("answer.txt").write_text("42\n")
raise SystemExit(7)
