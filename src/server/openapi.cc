// The OpenAPI document, from the table of routes.
#include "base/text.h"
#include "server/route.h"

namespace caisson::server {
namespace {

/// Schemas of responses. Members are only added; clients must accept unknown ones.
constexpr std::string_view kSchemas = R"json({
"Problem":{"type":"object","required":["type","title","status","code","reason"],"properties":{"type":{"type":"string"},"title":{"type":"string"},"status":{"type":"integer"},"code":{"type":"string","description":"For programs."},"reason":{"type":"string","description":"For people."},"try":{"type":"string","description":"What to do about it."},"approvals":{"type":"array","items":{"$ref":"#/components/schemas/Approval"}}}},
"Sandbox":{"type":"object","required":["id","name","labels","state","created","expires_in"],"properties":{"id":{"type":"string"},"name":{"type":"string"},"labels":{"type":"object","additionalProperties":{"type":"string"}},"state":{"type":"string","enum":["running","stopped","expired","damaged"]},"created":{"type":"integer"},"expires_in":{"type":"number"},"sandbox_timeout":{"type":"number"},"command_timeout":{"type":"number"},"workspace":{"type":"string"},"profile":{"type":"string"},"template":{"type":"string"},"network":{"type":"string","enum":["none","proxy","host"]},"allowed_hosts":{"type":"array","items":{"type":"string"}},"policy":{"type":"object"},"problem":{"type":"string"}}},
"SandboxList":{"type":"object","required":["sandboxes"],"properties":{"sandboxes":{"type":"array","items":{"$ref":"#/components/schemas/Sandbox"}},"next_cursor":{"type":["string","null"]}}},
"Usage":{"type":"object","properties":{"wall_ms":{"type":"number"},"user_cpu_ms":{"type":"number"},"system_cpu_ms":{"type":"number"},"peak_memory_bytes":{"type":"integer"},"read_bytes":{"type":"integer"},"written_bytes":{"type":"integer"},"processes_peak":{"type":["integer","null"]},"network_bytes":{"type":"integer"},"network_connections":{"type":"integer"},"network_denied":{"type":"integer"}}},
"Command":{"type":"object","required":["id","args","started","running"],"properties":{"id":{"type":"string"},"args":{"type":"array","items":{"type":"string"}},"args_truncated":{"type":"boolean","description":"In a list: only the first 4 KiB of the arguments are included."},"started":{"type":"integer"},"running":{"type":"boolean"},"stdout_bytes":{"type":"integer"},"stderr_bytes":{"type":"integer"},"stdout_dropped_bytes":{"type":"integer"},"stderr_dropped_bytes":{"type":"integer"},"outcome":{"type":"string","enum":["exited","signaled","limit","denied","setup_failed","cancelled"]},"exit_code":{"type":["integer","null"]},"signal":{"type":["integer","null"]},"limit":{"type":["string","null"]},"duration_ms":{"type":"number"},"usage":{"$ref":"#/components/schemas/Usage"}}},
"CommandList":{"type":"object","required":["commands"],"properties":{"commands":{"type":"array","items":{"$ref":"#/components/schemas/Command"}},"truncated":{"type":"boolean"}}},
"RunResult":{"type":"object","required":["version","sandbox_id","outcome","exit_code","signal","limit","stdout","stderr"],"properties":{"version":{"type":"integer"},"sandbox_id":{"type":"string"},"outcome":{"type":"string","enum":["exited","signaled","limit","denied","setup_failed","cancelled"]},"exit_code":{"type":["integer","null"]},"signal":{"type":["integer","string","null"]},"limit":{"type":["string","null"],"description":"The limit that ended it: time, cpu, memory, processes, disk, file_size, output."},"stdout":{"type":"string"},"stderr":{"type":"string"},"stdout_encoding":{"type":"string","enum":["utf-8","base64"]},"stderr_encoding":{"type":"string","enum":["utf-8","base64"]},"truncated":{"type":"object"},"duration_ms":{"type":"number"},"usage":{"$ref":"#/components/schemas/Usage"},"denials":{"type":"array","items":{"type":"object"}},"violations":{"type":"array","items":{"type":"object"}},"layers":{"type":"object"},"warnings":{"type":"array","items":{"type":"string"}},"error":{"type":"object"}}},
"CommandResult":{"anyOf":[{"$ref":"#/components/schemas/RunResult"},{"$ref":"#/components/schemas/Command"}]},
"File":{"type":"object","required":["name","type","size"],"properties":{"name":{"type":"string"},"name_encoding":{"type":"string"},"type":{"type":"string"},"size":{"type":"integer"},"mode":{"type":"integer"},"modified":{"type":"integer"}}},
"FileList":{"type":"object","required":["files"],"properties":{"files":{"type":"array","items":{"$ref":"#/components/schemas/File"}},"truncated":{"type":"boolean"}}},
"FileWritten":{"type":"object","required":["size"],"properties":{"size":{"type":"integer"}}},
"Checkpoint":{"type":"object","required":["name","created"],"properties":{"name":{"type":"string"},"created":{"type":"integer"}}},
"CheckpointList":{"type":"object","required":["checkpoints"],"properties":{"checkpoints":{"type":"array","items":{"$ref":"#/components/schemas/Checkpoint"}}}},
"Change":{"type":"object","required":["path","kind","type"],"properties":{"path":{"type":"string"},"path_encoding":{"type":"string"},"old_path":{"type":"string"},"old_path_encoding":{"type":"string"},"kind":{"type":"string","enum":["added","modified","deleted"]},"type":{"type":"string"},"size":{"type":"integer"},"binary":{"type":"boolean"},"added_lines":{"type":"integer"},"removed_lines":{"type":"integer"},"patch":{"type":"string"},"patch_encoding":{"type":"string"},"omitted":{"type":"string"}}},
"Diff":{"type":"object","required":["changes","truncated"],"properties":{"changes":{"type":"array","items":{"$ref":"#/components/schemas/Change"}},"truncated":{"type":"boolean"}}},
"Commit":{"type":"object","required":["digest","applied"],"properties":{"digest":{"type":"string"},"applied":{"type":"array","items":{"type":"object"}},"applied_not_listed":{"type":"integer","description":"How many did not fit into the list. The digest covers them."},"bytes":{"type":"integer"},"conflicts":{"type":"array","items":{"type":"object"}},"conflicts_not_listed":{"type":"integer"},"held":{"type":"array","items":{"type":"object"}},"held_not_listed":{"type":"integer"},"skipped":{"type":"array","items":{"type":"object"}},"skipped_not_listed":{"type":"integer"},"kept":{"type":"array","items":{"type":"string"}},"kept_not_listed":{"type":"integer"},"kept_encoding":{"type":"string"},"consistent":{"type":"boolean"},"searched":{"type":"boolean"}}},
"Port":{"type":"object","required":["port","host_port"],"properties":{"port":{"type":"integer"},"host_port":{"type":"integer"},"preview_url":{"type":"string"}}},
"PortList":{"type":"object","required":["ports"],"properties":{"ports":{"type":"array","items":{"$ref":"#/components/schemas/Port"}}}},
"Network":{"type":"object","required":["mode","allowed_hosts"],"properties":{"mode":{"type":"string"},"allowed_hosts":{"type":"array","items":{"type":"string"}}}},
"CredentialList":{"type":"object","required":["credentials"],"properties":{"credentials":{"type":"array","items":{"type":"object"}}}},
"Approval":{"type":"object","required":["id","what","state"],"properties":{"id":{"type":"string"},"what":{"type":"string"},"meaning":{"type":"string"},"sandbox_id":{"type":"string"},"digest":{"type":"string","description":"Of a commit: only this one is approved."},"changes":{"type":"array","description":"What a commit writes: those with a caution first, then by path. At most 100 changes and about 16 KiB; events omit the list.","items":{"$ref":"#/components/schemas/ApprovalChange"}},"changes_total":{"type":"integer"},"changes_not_listed":{"type":"integer"},"changes_with_caution":{"type":"integer","description":"How many the host may execute later, or are of an unusual kind."},"caller":{"type":"string"},"asked":{"type":"integer"},"state":{"type":"string","enum":["pending","allowed","denied"]}}},
"ApprovalChange":{"type":"object","required":["kind","path","type","size"],"properties":{"kind":{"type":"string","enum":["added","modified","deleted"]},"path":{"type":"string","description":"Control characters and such that hide or reorder text are escaped."},"escaped":{"type":"boolean","description":"The path has such characters."},"type":{"type":"string"},"size":{"type":"integer"},"executable":{"type":"boolean"},"target":{"type":"string","description":"Of a link, escaped like the path."},"replaces_directory":{"type":"boolean"},"mode_change":{"type":"string","description":"Of permission bits: mode 0600 -> 0644."},"caution":{"type":"string","description":"Why the host may execute it later, or that it is of an unusual kind."}}},
"ApprovalList":{"type":"object","required":["approvals"],"properties":{"approvals":{"type":"array","items":{"$ref":"#/components/schemas/Approval"}}}},
"PolicyList":{"type":"object","required":["profiles"],"properties":{"profiles":{"type":"array","items":{"type":"object"}},"default":{"type":"string"}}},
"Policy":{"type":"object","required":["name","policy"],"properties":{"name":{"type":"string"},"policy":{"type":"object"},"explanation":{"type":"string"}}},
"PolicyCheck":{"type":"object","required":["valid","errors"],"properties":{"valid":{"type":"boolean"},"errors":{"type":"array","items":{"type":"object"}},"widenings":{"type":"array","items":{"type":"object"}},"explanation":{"type":"string"}}},
"AuditList":{"type":"object","required":["records"],"properties":{"records":{"type":"array","items":{"type":"object"}}}},
"Stats":{"type":"object","properties":{"sandboxes":{"type":"integer"},"pools":{"type":"object"},"events":{"type":"object"},"read_bytes":{"type":"integer"},"written_bytes":{"type":"integer"},"network_bytes":{"type":"integer"},"version":{"type":"string"}}},
"TemplateList":{"type":"object","required":["templates"],"properties":{"templates":{"type":"array","items":{"type":"object"}}}},
"ImageList":{"type":"object","required":["images"],"properties":{"images":{"type":"array","items":{"type":"object"}}}},
"Caller":{"type":"object","required":["id","name","owner","scopes"],"properties":{"id":{"type":"string"},"name":{"type":"string"},"owner":{"type":"boolean"},"scopes":{"type":"string"}}},
"Status":{"type":"object","required":["status"],"properties":{"status":{"type":"string"}}},
"Document":{"type":"object"}
})json";

Json schemaOf(const Field& field) {
  Json schema;
  switch (field.type) {
    case FieldType::text: schema["type"] = "string"; break;
    case FieldType::integer: schema["type"] = "integer"; break;
    case FieldType::number: schema["type"] = "number"; break;
    case FieldType::boolean: schema["type"] = "boolean"; break;
    case FieldType::texts: schema = {{"type", "array"}, {"items", {{"type", "string"}}}}; break;
    case FieldType::variables: schema = {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}}; break;
    case FieldType::object: schema["type"] = "object"; break;
  }
  if (field.type == FieldType::integer || field.type == FieldType::number) {
    schema["minimum"] = field.least;
    schema["maximum"] = field.most;
  }
  for (const std::string_view choice : split(field.choices, ',')) schema["enum"].push_back(choice);
  return schema;
}

Json parametersOf(const Route& route) {
  Json list = Json::array();
  for (const std::string_view part : split(route.pattern, '/')) {
    if (!part.starts_with('{')) continue;
    list.push_back({{"name", part.substr(1, part.size() - 2)},
                    {"in", "path"},
                    {"required", true},
                    {"schema", {{"type", "string"}}}});
  }
  for (const Field& field : route.query)
    list.push_back({{"name", field.name},
                    {"in", "query"},
                    {"required", field.required},
                    {"description", field.description},
                    {"schema", schemaOf(field)}});
  if (route.idempotent_key)
    list.push_back({{"name", "Idempotency-Key"},
                    {"in", "header"},
                    {"required", false},
                    {"description", route.operation == "runCommand"
                                        ? "A repeated request with the same key gets the first one's response. Not "
                                          "with mode stream."
                                        : "A repeated request with the same key gets the first one's response."},
                    {"schema", {{"type", "string"}, {"maxLength", 256}}}});
  if (route.operation == "readFile")
    list.push_back({{"name", "Range"}, {"in", "header"}, {"required", false}, {"schema", {{"type", "string"}}}});
  return list;
}

Json bodyOf(const Route& route) {
  if (route.body == BodyKind::raw) {
    const char* type = route.operation == "writeArchive" ? "application/x-tar" : "application/octet-stream";
    return {{"required", true}, {"content", {{type, {{"schema", {{"type", "string"}, {"format", "binary"}}}}}}}};
  }
  Json properties = Json::object(), required = Json::array();
  for (const Field& field : route.fields) {
    Json schema = schemaOf(field);
    schema["description"] = field.description;
    properties[std::string(field.name)] = std::move(schema);
    if (field.required) required.push_back(field.name);
  }
  Json schema{{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = required;
  return {{"required", !required.empty()}, {"content", {{"application/json", {{"schema", std::move(schema)}}}}}};
}

Json responsesOf(const Route& route) {
  Json success{{"description", route.status == 204 ? "Done." : "Success."}};
  if (!route.result.empty())
    success["content"] = {
        {route.content_type, {{"schema", {{"$ref", "#/components/schemas/" + std::string(route.result)}}}}}};
  else if (route.status == 200)
    success["content"] = {{route.content_type, {{"schema", {{"type", "string"}}}}}};
  Json responses;
  responses[std::to_string(route.status)] = success;
  if (route.operation == "runCommand") {
    success["description"] = "It still runs.";
    responses["202"] = success;
  }
  if (route.operation == "publishPort") responses["200"] = success;
  if (route.operation == "readFile") responses["206"] = success;
  const Json failure{
      {"description", "See the member `code`."},
      {"content", {{"application/problem+json", {{"schema", {{"$ref", "#/components/schemas/Problem"}}}}}}}};
  responses["4XX"] = failure;
  responses["5XX"] = failure;
  return responses;
}

}  // namespace

std::string openApi() {
  Json document{{"openapi", "3.1.0"},
                {"info",
                 {{"title", "caisson"},
                  {"version", "1"},
                  {"summary", "Sandboxes over HTTP"},
                  {"description",
                   "Times are seconds since 1970, durations are seconds. Unknown fields of requests are errors; "
                   "clients must accept unknown members of responses."},
                  {"license", {{"name", "Apache 2.0"}, {"identifier", "Apache-2.0"}}}}},
                {"servers", Json::array({{{"url", "http://127.0.0.1:7080"}}})},
                {"security", Json::array({{{"token", Json::array()}}})}};
  document["components"]["schemas"] = Json::parse(kSchemas);
  document["components"]["securitySchemes"]["token"] = {{"type", "http"}, {"scheme", "bearer"}};
  std::vector<std::string> tags;
  for (const Route* route : allRoutes()) {
    Json operation{{"operationId", route->operation}, {"tags", Json::array({route->tag})}, {"summary", route->summary}};
    const Json parameters = parametersOf(*route);
    if (!parameters.empty()) operation["parameters"] = parameters;
    if (route->body != BodyKind::none) operation["requestBody"] = bodyOf(*route);
    operation["responses"] = responsesOf(*route);
    if (route->access == Access::open) operation["security"] = Json::array();
    document["paths"][std::string(route->pattern)][lowered(route->method)] = std::move(operation);
    if (tags.empty() || tags.back() != route->tag) tags.emplace_back(route->tag);
  }
  for (const std::string& tag : tags)
    document["tags"].push_back({{"name", tag}, {"description", "Routes for " + tag + "."}});
  return writeJson(document) + "\n";
}

}  // namespace caisson::server
