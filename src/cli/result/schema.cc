#include "cli/result/schema.h"

namespace caisson::cli {

namespace {

constexpr std::string_view kSchema = R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "caisson result",
  "description": "What `caisson run --json`, `run --result FILE` and `session exec --json` write. Fields are only added.",
  "type": "object",
  "required": ["version", "sandbox_id", "outcome", "exit_code", "signal", "signal_name", "limit", "stdout",
    "stdout_encoding", "stderr", "stderr_encoding", "truncated", "duration_ms", "usage", "denials", "violations",
    "layers", "warnings", "notices", "lifecycle"],
  "properties": {
    "version": {"const": 1},
    "sandbox_id": {"type": "string", "description": "Empty if the run was refused before it had one."},
    "outcome": {"enum": ["exited", "signaled", "limit", "denied", "setup_failed", "cancelled"]},
    "exit_code": {"type": ["integer", "null"], "minimum": 0, "maximum": 255, "description": "Null unless it exited."},
    "signal": {"type": ["integer", "null"], "minimum": 1, "maximum": 64},
    "signal_name": {"type": ["string", "null"], "pattern": "^SIG"},
    "limit": {"enum": ["time", "cpu", "memory", "processes", "disk", "file_size", "output", null]},
    "stdout": {"type": "string"},
    "stdout_encoding": {"enum": ["utf-8", "base64"]},
    "stderr": {"type": "string"},
    "stderr_encoding": {"enum": ["utf-8", "base64"]},
    "truncated": {
      "type": "object",
      "required": ["stdout", "stderr"],
      "properties": {
        "stdout": {"type": "boolean"},
        "stderr": {"type": "boolean"},
        "stdout_dropped_bytes": {"type": "integer", "minimum": 1},
        "stderr_dropped_bytes": {"type": "integer", "minimum": 1}
      }
    },
    "duration_ms": {"type": "number", "minimum": 0},
    "usage": {
      "type": "object",
      "required": ["wall_ms", "user_cpu_ms", "system_cpu_ms", "peak_memory_bytes", "read_bytes", "written_bytes",
        "processes_peak", "network_bytes", "network_connections", "network_denied"],
      "properties": {
        "wall_ms": {"type": "number", "minimum": 0},
        "user_cpu_ms": {"type": "number", "minimum": 0},
        "system_cpu_ms": {"type": "number", "minimum": 0},
        "peak_memory_bytes": {"type": "integer", "minimum": 0, "description": "0: unknown."},
        "read_bytes": {"type": "integer", "minimum": 0},
        "written_bytes": {"type": "integer", "minimum": 0},
        "processes_peak": {"type": ["integer", "null"], "minimum": 0, "description": "Null: unknown."},
        "network_bytes": {"type": "integer", "minimum": 0},
        "network_connections": {"type": "integer", "minimum": 0},
        "network_denied": {"type": "integer", "minimum": 0}
      }
    },
    "denials": {
      "type": "array",
      "items": {
        "type": "object",
        "required": ["rule", "object", "operation", "remedy"],
        "properties": {
          "rule": {"type": "string"},
          "object": {"type": "string"},
          "operation": {"type": "string"},
          "remedy": {"type": "string"},
          "count": {"type": "integer", "minimum": 1}
        }
      }
    },
    "violations": {
      "type": "array",
      "items": {
        "type": "object",
        "required": ["rule", "object", "operation", "remedy", "severity", "indicator"],
        "properties": {
          "rule": {"type": "string"},
          "object": {"type": "string"},
          "operation": {"type": "string"},
          "remedy": {"type": "string"},
          "count": {"type": "integer", "minimum": 1},
          "severity": {"enum": ["LOW", "HIGH", "CRITICAL"]},
          "indicator": {"type": "string"},
          "syscall": {"type": "string"},
          "number": {"type": "integer"},
          "architecture": {"type": "string"},
          "arguments": {"type": "array", "items": {"type": "string", "pattern": "^0(x[0-9a-f]+)?$"}},
          "pid": {"type": "integer", "minimum": 0},
          "program": {"type": "string"},
          "errno": {"type": "string"}
        }
      }
    },
    "escape": {
      "type": "object",
      "description": "Only if an escape attempt ended the sandbox.",
      "required": ["indicator", "severity", "reason", "rollback", "quarantined", "trace"],
      "properties": {
        "indicator": {"type": "string"},
        "severity": {"type": "string"},
        "reason": {"type": "string"},
        "rollback": {"type": "string"},
        "quarantined": {"type": "string"},
        "trace": {"type": "string"}
      }
    },
    "files": {
      "type": "array",
      "description": "Only with --learn or --trace files.",
      "items": {
        "type": "object",
        "required": ["path", "operation", "state", "count"],
        "properties": {
          "path": {"type": "string"},
          "operation": {"enum": ["look", "read", "write", "create", "execute"]},
          "state": {"enum": ["present", "absent", "hidden", "read-only", "noexec"]},
          "count": {"type": "integer", "minimum": 1}
        }
      }
    },
    "layers": {"type": "object", "additionalProperties": {"type": "string"}},
    "warnings": {"type": "array", "items": {"type": "string"}},
    "notices": {"type": "array", "items": {"type": "string"}},
    "lifecycle": {
      "type": "array",
      "items": {
        "type": "object",
        "required": ["state", "at_ms"],
        "properties": {
          "state": {"enum": ["Created", "Initialized", "Running", "Monitoring", "Completed", "Timeout", "Error", "Cleanup"]},
          "at_ms": {"type": "number", "minimum": 0}
        }
      }
    },
    "error": {
      "type": "object",
      "description": "Only if the sandbox could not be built or was refused.",
      "required": ["stage", "code", "call", "object", "errno", "reason", "hint"],
      "properties": {
        "stage": {"type": "string"},
        "code": {"type": "string"},
        "call": {"type": "string"},
        "object": {"type": "string"},
        "errno": {"type": ["string", "null"]},
        "reason": {"type": "string"},
        "hint": {"type": "string"}
      }
    }
  }
}
)json";

}  // namespace

std::string_view resultSchema() { return kSchema; }

}  // namespace caisson::cli
