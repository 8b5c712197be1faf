#include "report.h"

#include <cstdarg>
#include <cstdio>

#include "targets.h"

namespace bench {
namespace {

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...) {
  char buffer[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

std::string quoted(const std::string& value) {
  std::string result = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\')
      (result += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      result += text("\\u%04x", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + '"';
}

std::string summaryJson(const Summary& summary) {
  return text(R"({"count":%zu,"min":%.6g,"median":%.6g,"p99":%.6g,"iqr":%.4f,"mad":%.4f,"drift":%.4f})", summary.count,
              summary.minimum, summary.median, summary.p99, summary.spread, summary.deviation, summary.drift);
}

std::string insideJson(const std::optional<Inside>& inside) {
  if (!inside) return "null";
  return "{\"summary\":" + summaryJson(inside->summary) +
         text(R"(,"ratio":%.4f,"difference":%.6g})", inside->ratio, inside->difference);
}

/// `items` as a JSON array, each written by `write`.
template <class Items, class Write>
std::string list(const Items& items, Write write) {
  std::string result = "[";
  for (const auto& item : items) {
    if (result.size() > 1) result += ",";
    result += "\n  " + write(item);
  }
  return result + "]";
}

std::string insideColumn(const std::optional<Inside>& inside, bool is_time) {
  if (!inside) return text("%20s", "-");
  return is_time ? text("%10.2f  %7.3fx", inside->summary.median, inside->ratio)
                 : text("%10.1f  %+6.1f ns", inside->summary.median, inside->difference);
}

}  // namespace

void printLaunches(const Results& results) {
  if (results.launches.empty()) return;
  std::printf("\nOne launch of `true`, milliseconds, round-robin\n");
  std::printf("%-24s %6s %8s %8s %8s %7s %6s %6s\n", "", "n", "median", "p99", "min", "/floor", "IQR", "MAD");
  for (const LaunchResult& one : results.launches) {
    std::printf("%-24s %6zu %8.3f %8.3f %8.3f %6.2fx %5.1f%% %5.1f%%%s\n", one.row->name.c_str(), one.ms.count,
                one.ms.median, one.ms.p99, one.ms.minimum, one.to_floor, one.ms.spread * 100, one.ms.deviation * 100,
                one.failures > 0 ? text("  (%u failed)", one.failures).c_str() : "");
  }
  for (const Row& row : results.rows) {
    if (!row.absent.empty()) std::printf("%-24s not measured: %s\n", row.name.c_str(), row.absent.c_str());
  }
  std::printf("\nNot isolated in these configurations\n");
  for (const Row& row : results.rows) {
    if (row.absent.empty()) std::printf("  %-24s %s\n", row.name.c_str(), row.open.c_str());
  }
  if (!results.layers.empty()) std::printf("  caisson's layers here: %s\n", results.layers.c_str());
}

void printThroughput(const Results& results) {
  if (results.throughput.empty()) return;
  std::printf("\nLaunches per second\n%-24s %10s %10s %10s %10s\n", "in flight", "1", "2", "8", "32");
  for (const Row& row : results.rows) {
    std::string line;
    for (const ThroughputResult& one : results.throughput) {
      if (one.row->contender == row.contender) line += text(" %10.0f", one.per_second);
    }
    if (!line.empty()) std::printf("%-24s%s\n", row.name.c_str(), line.c_str());
  }
}

void printMemory(const Results& results) {
  if (results.memory.empty()) return;
  std::printf("\nMemory of the sandbox itself while `sleep 0.2` runs, KiB\n");
  std::printf("%-24s %10s %12s %12s %14s\n", "", "processes", "PSS, sum", "RSS, sum", "RSS, largest");
  for (const MemoryResult& one : results.memory) {
    const std::string pss = text("%.0f%s", one.peak_pss_kib, one.unreadable > 0 ? "*" : "");
    std::printf("%-24s %10u %12s %12.0f %14.0f\n", one.name.c_str(), one.processes, pss.c_str(), one.peak_rss_kib,
                one.largest_rss_kib);
  }
  std::printf("* the proportional size (PSS) of a process is unreadable: its peak RSS is used instead\n");
}

void printAudit(const Results& results) {
  if (!results.audit) return;
  std::printf("\nAudit log: ");
  if (results.audit->absent.empty()) {
    std::printf("%.0f events per second, one writer on one core, each acknowledged by itself\n",
                results.audit->events_per_second);
  } else {
    std::printf("not measured: %s\n", results.audit->absent.c_str());
  }
}

void printWork(const Results& results) {
  if (results.work.empty()) return;
  std::printf("\nRunning programs: median natively and inside (ms; ns for one system call), launches not included\n");
  std::printf("%-30s %9s %20s %20s %7s\n", "", "native", "floor", "caisson", "IQR");
  for (const WorkResult& one : results.work) {
    if (!one.absent.empty()) {
      std::printf("%-30s not measured: %s\n", one.name.c_str(), one.absent.c_str());
      continue;
    }
    const bool is_time = one.unit == "ms";
    std::printf("%-30s %9.*f %20s %20s %6.1f%%\n", one.name.c_str(), is_time ? 2 : 1, one.native.median,
                insideColumn(one.floor, is_time).c_str(), insideColumn(one.caisson, is_time).c_str(),
                one.native.spread * 100);
  }
}

void printGrowth(const Results& results) {
  if (results.growth.empty()) return;
  std::printf("\nGrowth: median of a launch in milliseconds with so many of a thing\n");
  for (const GrowthResult& one : results.growth) {
    if (!one.absent.empty()) {
      std::printf("%-32s not measured: %s\n", one.what.c_str(), one.absent.c_str());
      continue;
    }
    std::printf("%-32s", one.what.c_str());
    for (const GrowthPoint& point : one.points) std::printf(" %4u: %7.2f", point.count, point.ms.median);
    std::printf("   %6.1f us each%s\n", one.each(),
                one.bend() == 0 ? "" : text(", %.2f times that per piece at the upper end", one.bend()).c_str());
  }
}

void printTargets(const Results& results) {
  const auto verdicts = judge(results);
  if (verdicts.empty()) return;
  std::printf("\nTargets\n");
  for (const Verdict& one : verdicts) {
    const char* word = one.noisy ? "not judged, noisy" : one.met() ? "met" : "MISSED";
    std::printf("  %-48s %8.2f  %s %-6.4g %s\n", one.target.c_str(), one.value, one.at_least ? ">=" : "<=", one.limit,
                word);
  }
}

void printNoise(const Results& results) {
  std::string why;
  if (isNoisy(results, why)) {
    std::printf("\nNOISY: %s. The figures of this run are not to be quoted.\n", why.c_str());
  } else {
    std::printf("\nSteady: other load, spread and drift are within the limits for comparing medians.\n");
  }
}

std::string toJson(const Results& results) {
  std::string json = "{\"host\":" + quoted(results.host);
  json += text(",\n\"busy_elsewhere\":%.3f,\n\"layers\":", results.busy_elsewhere) +
          (results.layers.empty() ? "null" : results.layers);
  json += ",\n\"rows\":" + list(results.rows, [](const Row& row) {
            return "{\"name\":" + quoted(row.name) + ",\"not_isolated\":" + quoted(row.open) +
                   ",\"not_measured\":" + (row.absent.empty() ? "null" : quoted(row.absent)) +
                   ",\"command\":" + list(row.command.argv, quoted) + "}";
          });
  json += ",\n\"launch_ms\":" + list(results.launches, [](const LaunchResult& one) {
            return "{\"name\":" + quoted(one.row->name) + ",\"summary\":" + summaryJson(one.ms) +
                   text(R"(,"to_floor":%.4f,"failures":%u})", one.to_floor, one.failures);
          });
  json += ",\n\"throughput\":" + list(results.throughput, [](const ThroughputResult& one) {
            return "{\"name\":" + quoted(one.row->name) +
                   text(R"(,"in_flight":%u,"per_second":%.1f})", one.in_flight, one.per_second);
          });
  if (results.audit) json += text(",\n\"audit_events_per_second\":%.0f", results.audit->events_per_second);
  json += ",\n\"memory_kib\":" + list(results.memory, [](const MemoryResult& one) {
            return "{\"name\":" + quoted(one.name) +
                   text(R"(,"processes":%u,"unreadable":%u,"pss_sum":%.0f,"rss_sum":%.0f,"rss_largest":%.0f})",
                        one.processes, one.unreadable, one.peak_pss_kib, one.peak_rss_kib, one.largest_rss_kib);
          });
  json += ",\n\"work\":" + list(results.work, [](const WorkResult& one) {
            return "{\"name\":" + quoted(one.name) + ",\"unit\":" + quoted(one.unit) +
                   ",\"not_measured\":" + (one.absent.empty() ? "null" : quoted(one.absent)) +
                   ",\"native\":" + summaryJson(one.native) + ",\"floor\":" + insideJson(one.floor) +
                   ",\"caisson\":" + insideJson(one.caisson) + "}";
          });
  json += ",\n\"growth\":" + list(results.growth, [](const GrowthResult& one) {
            return "{\"what\":" + quoted(one.what) +
                   ",\"not_measured\":" + (one.absent.empty() ? "null" : quoted(one.absent)) +
                   text(R"(,"us_each":%.3f,"bend":%.3f,"points":)", one.each(), one.bend()) +
                   list(one.points,
                        [](const GrowthPoint& point) {
                          return text(R"({"count":%u,"ms":)", point.count) + summaryJson(point.ms) + "}";
                        }) +
                   "}";
          });
  std::string why;
  json += std::string(",\n\"noisy\":") + (isNoisy(results, why) ? quoted(why) : "null");
  json += ",\n\"targets\":" + list(judge(results), [](const Verdict& one) {
            return "{\"target\":" + quoted(one.target) +
                   text(R"(,"value":%.4f,"limit":%.4g,"verdict":)", one.value, one.limit) +
                   (one.noisy   ? "\"noisy\"}"
                    : one.met() ? "\"met\"}"
                                : "\"missed\"}");
          });
  return json + "}\n";
}

}  // namespace bench
