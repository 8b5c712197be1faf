// The lists of the fixture, as the suite expects them.
#pragma once

#include <string_view>

namespace caisson::mcp {

/// Names of the tools without arguments. All take an empty object.
inline constexpr std::string_view kPlainTools[] = {
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_error_handling",
    "test_tool_with_progress",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_reconnection",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "failing_job",
    "protocol_error_job",
    "multi_input",
    "test_tool_with_task",
};

inline constexpr std::string_view kToolsWithArguments = R"json([
  {"name": "test_sampling", "description": "Asks the client for a completion.",
   "inputSchema": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}},
  {"name": "test_elicitation", "description": "Asks the person for a name and an address.",
   "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}},
  {"name": "greet", "description": "Greets; never a task.",
   "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
  {"name": "slow_compute", "description": "Takes as long as it is told to.",
   "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}, "label": {"type": "string"}}}},
  {"name": "confirm_delete", "description": "Asks before it continues.",
   "inputSchema": {"type": "object", "properties": {"filename": {"type": "string"}}, "required": ["filename"]}},
  {"name": "test_mirrored_parameter", "description": "Takes a parameter that is repeated in a header.",
   "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}},
  {"name": "json_schema_2020_12_tool", "description": "Has a schema that uses what draft 2020-12 offers.",
   "inputSchema": {
     "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
     "$defs": {"address": {"$anchor": "addressDef", "type": "object",
                           "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
     "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
                    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                    "phone": {"type": "string"}, "email": {"type": "string"}},
     "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
     "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
     "then": {"required": ["phone"]}, "else": {"required": ["email"]}, "additionalProperties": false}}
])json";

inline constexpr std::string_view kPrompts = R"json([
  {"name": "test_simple_prompt", "description": "One sentence."},
  {"name": "test_prompt_with_arguments", "description": "Two arguments put into a sentence.",
   "arguments": [{"name": "arg1", "description": "The first", "required": true},
                 {"name": "arg2", "description": "The second", "required": true}]},
  {"name": "test_prompt_with_embedded_resource", "description": "Embeds a resource.",
   "arguments": [{"name": "resourceUri", "description": "What to embed", "required": true}]},
  {"name": "test_prompt_with_image", "description": "Holds a picture."},
  {"name": "test_input_required_result_prompt", "description": "Asks before it answers."}
])json";

inline constexpr std::string_view kResources = R"json([
  {"uri": "test://static-text", "name": "static-text", "description": "A fixed text.", "mimeType": "text/plain"},
  {"uri": "test://static-binary", "name": "static-binary", "description": "A fixed picture.", "mimeType": "image/png"},
  {"uri": "test://watched-resource", "name": "watched-resource", "description": "One to subscribe to.",
   "mimeType": "text/plain"}
])json";

inline constexpr std::string_view kTemplates = R"json([
  {"uriTemplate": "test://template/{id}/data", "name": "template", "description": "A text made from its address.",
   "mimeType": "application/json"}
])json";

/// An image of one pixel and a sound without samples.
inline constexpr std::string_view kPng =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
inline constexpr std::string_view kWav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

inline constexpr std::string_view kDefaultsForm = R"json({"message": "Please check these values",
  "requestedSchema": {"type": "object", "properties": {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": true}}, "required": []}})json";

inline constexpr std::string_view kEnumsForm = R"json({"message": "Please choose",
  "requestedSchema": {"type": "object", "properties": {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First Option"},
      {"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"}]},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
      "enumNames": ["Option One", "Option Two", "Option Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": [{"const": "value1", "title": "First Choice"},
      {"const": "value2", "title": "Second Choice"}, {"const": "value3", "title": "Third Choice"}]}}},
    "required": []}})json";

}  // namespace caisson::mcp
