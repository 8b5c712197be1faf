// Which records of the audit log a caller may read.
#pragma once

#include <map>
#include <string>

#include "audit/reader.h"
#include "service/sandboxes.h"

namespace caisson::server {

/// The owner reads everything. Others read records about sandboxes that exist for them; admins also requests of tokens
/// and of callers without one. Not kept for long: it remembers which sandboxes exist.
class AuditAccess {
 public:
  AuditAccess(service::Sandboxes& sandboxes, const service::Principal& caller)
      : sandboxes_(sandboxes), caller_(caller) {}
  bool mayRead(const audit::Entry& entry);

 private:
  bool sees(const std::string& sandbox);

  service::Sandboxes& sandboxes_;
  const service::Principal& caller_;
  std::map<std::string, bool> known_;
};

}  // namespace caisson::server
