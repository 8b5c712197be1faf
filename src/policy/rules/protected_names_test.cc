// Every name of tests/security/protected/catalogue.jsonl has its verdict.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "policy/rules/protected_files.h"

namespace caisson::policy {

extern const char* const kDocumentDirectory;

namespace {

std::string sourceFile(const std::string& path) {
  const char* source = std::getenv("CAISSON_SOURCE_DIR");
  return (source != nullptr ? std::string(source) : std::string(kDocumentDirectory) + "/..") + "/" + path;
}

const std::vector<nlohmann::json>& catalogue() {
  static const std::vector<nlohmann::json> rows = [] {
    std::vector<nlohmann::json> made;
    std::ifstream file(sourceFile("tests/security/protected/catalogue.jsonl"));
    for (std::string line; std::getline(file, line);) made.push_back(nlohmann::json::parse(line));
    return made;
  }();
  return rows;
}

struct JudgedName {
  std::string name, category;
  bool is_protected;
};

std::vector<JudgedName> judgedNames() {
  std::vector<JudgedName> names;
  for (const nlohmann::json& row : catalogue()) {
    for (const nlohmann::json& one : row.at("names")) {
      names.push_back(
          {one.get<std::string>(), row.at("category").get<std::string>(), row.at("verdict") == "protected"});
    }
  }
  return names;
}

/// A path in a project that the name stands for.
std::string examplePath(std::string name) {
  for (std::size_t at = name.find('*'); at != std::string::npos; at = name.find('*', at)) name.replace(at, 1, "some");
  if (name.ends_with('/')) name += "file";
  return name;
}

}  // namespace

TEST(ProtectedNames, AreJudgedWithAReason) {
  std::set<std::string> seen;
  for (const JudgedName& one : judgedNames()) EXPECT_TRUE(seen.insert(one.name).second) << one.name;
  EXPECT_GE(seen.size(), 1000U);
  for (const nlohmann::json& row : catalogue()) {
    const std::string verdict = row.at("verdict");
    EXPECT_TRUE(verdict == "protected" || verdict == "ordinary") << row;
    for (const char* field : {"who", "when", verdict == "protected" ? "source" : "why"}) {
      EXPECT_FALSE(row.value(field, "").empty()) << field << " is missing: " << row;
    }
  }
}

TEST(ProtectedNames, AreProtectedOrNotByTheirVerdict) {
  const ProtectedFiles files;
  for (const JudgedName& one : judgedNames()) {
    const std::string path = examplePath(one.name);
    for (const char* directory : {"", "project/sub/"}) {
      const auto found = files.match(directory + path);
      EXPECT_EQ(found.has_value(), one.is_protected) << directory << path;
      if (found && one.category != "git") {
        EXPECT_EQ(name(found->category), one.category) << path;
      }
    }
    if (one.category == "git") {
      EXPECT_EQ(isRepositoryData(path.substr(std::string(".git/").size())), !one.is_protected) << path;
    }
  }
}

TEST(ProtectedNames, AreTheBuiltInTable) {
  std::set<std::string> judged, table;
  for (const JudgedName& one : judgedNames()) {
    if (one.is_protected && one.category != "git") judged.insert(one.category + " " + one.name);
  }
  for (const ProtectedPattern& one : protectedPatterns()) {
    table.insert(std::string(name(one.category)) + " " + std::string(one.pattern));
  }
  EXPECT_EQ(judged, table);
}

/// The rows of the documented table: what, why, names.
TEST(ProtectedNames, ThatAreOrdinaryAreDocumented) {
  std::ifstream document(sourceFile("docs/protected-files.md"));
  std::map<std::string, std::string> documented, judged;
  bool found = false;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("## ")) found = line == "## Ordinary by decision";
    if (!found || !line.starts_with("| ") || line.starts_with("| what")) continue;
    documented[line.substr(2, line.find(" |", 2) - 2)] = line;
  }
  for (const nlohmann::json& row : catalogue()) {
    if (row.at("verdict") != "ordinary" || row.at("category") == "git") continue;
    const std::string category = row.at("category");
    std::string line = "| " + category + " | " + row.at("why").get<std::string>() + " |";
    for (const nlohmann::json& one : row.at("names")) line += " `" + one.get<std::string>() + "`";
    judged[category] = line + " |";
  }
  EXPECT_EQ(documented, judged);
}

}  // namespace caisson::policy
