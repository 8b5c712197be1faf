"""A scripted model with the streaming interfaces of Anthropic (/v1/messages) and OpenAI (/v1/responses).

Each conversation gets the commands of the script in order, as calls of the agent's shell tool, and then a final text.
Every request is recorded: its API key, and the results of the calls so far.

As a program: model_api.py SCRIPT LOG PORT_FILE [ADDRESS CERTIFICATE KEY]. SCRIPT is a JSON list of commands; LOG
receives one JSON object per request. Listens on loopback unless an address is given.
"""
import http.server
import json
import os
import ssl
import sys
import threading

DONE = "The script has ended."


class Script:
    """The commands, and the received requests."""

    def __init__(self, commands, log):
        self.commands, self.log, self.lock = commands, log, threading.Lock()

    def record(self, entry):
        with self.lock, open(self.log, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def text_of(content):
    """Returns the text of a tool result, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def anthropic_results(body):
    return [text_of(block.get("content")) for message in body.get("messages", [])
            if isinstance(message.get("content"), list)
            for block in message["content"] if block.get("type") == "tool_result"]


def openai_results(body):
    items = body.get("input", [])
    return [text_of(item.get("output")) for item in items
            if isinstance(item, dict) and item.get("type", "").endswith("call_output")]


def anthropic_events(body, command, number):
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body.get("model", "scripted"),
               "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": message}
    if command is None:
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": DONE}}
    else:
        arguments = json.dumps({"command": command, "description": "Runs a step"})
        yield {"type": "content_block_start", "index": 0, "content_block": {
            "type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {}}}
        yield {"type": "content_block_delta", "index": 0, "delta": {
            "type": "input_json_delta", "partial_json": arguments}}
    yield {"type": "content_block_stop", "index": 0}
    reason = "end_turn" if command is None else "tool_use"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def shell_call(body, command):
    """Returns the name and arguments of the shell tool that this version of Codex has."""
    offered = {tool.get("name"): tool for tool in body.get("tools", [])}
    for name, key in (("exec_command", "cmd"), ("shell_command", "command")):
        if name in offered:
            return name, {key: command}
    return "shell", {"command": ["bash", "-lc", command]}


def openai_events(body, command, number):
    name = f"resp_{number}"
    yield {"type": "response.created", "response": {"id": name}}
    if command is None:
        item = {"type": "message", "role": "assistant", "id": f"msg_{number}",
                "content": [{"type": "output_text", "text": DONE}]}
    else:
        tool, arguments = shell_call(body, command)
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": tool,
                "arguments": json.dumps(arguments)}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": name, "output": [item], "usage": {
        "input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None,
        "total_tokens": 2}}}


def has_shell(body):
    """Other requests (titles, summaries) have no shell tool and get the final text."""
    names = {tool.get("name") for tool in body.get("tools") or []}
    return bool(names & {"Bash", "exec_command", "shell_command", "shell"})


def handler_for(script):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def log_message(self, *_):
            pass

        def reply(self, status, data, kind="application/json"):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            script.record({"path": self.path, "key": self.key()})
            self.reply(200, b'{"data": [], "models": [], "object": "list"}')

        def key(self):
            return self.headers.get("x-api-key") or self.headers.get("authorization") or ""

        def do_POST(self):
            length = int(self.headers.get("content-length") or 0)
            raw = self.rfile.read(length)
            path = self.path.split("?")[0]
            known = {"/v1/messages": (anthropic_results, anthropic_events),
                     "/v1/responses": (openai_results, openai_events)}.get(path)
            if known is None:
                script.record({"path": self.path, "key": self.key()})
                self.reply(404, b'{"error": {"type": "not_found_error", "message": "not in the script"}}')
                return
            body = json.loads(raw)
            results = known[0](body)
            script.record({"path": path, "key": self.key(), "results": results, "shell": has_shell(body),
                           "tools": [tool.get("name") for tool in body.get("tools") or []]})
            step = len(results)
            command = script.commands[step] if has_shell(body) and step < len(script.commands) else None
            stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                             for event in known[1](body, command, step))
            self.reply(200, stream.encode(), "text/event-stream")

    return Handler


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Ignores errors: some tests use clients that reject the certificate or disconnect early."""


def serve(script, address="127.0.0.1", certificate=None, key=None):
    """Starts the server in a thread and returns it; server_address[1] is its port."""
    server = Server((address, 0), handler_for(script))
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        script = Script(json.load(file), sys.argv[2])
    server = serve(script, *sys.argv[4:7])
    with open(sys.argv[3] + ".new", "w", encoding="utf-8") as file:
        file.write(str(server.server_address[1]))
    os.rename(sys.argv[3] + ".new", sys.argv[3])
    threading.Event().wait()


if __name__ == "__main__":
    main()
