#include "app/report.h"
#include "app/snapshot_json.h"

namespace halfpage {

std::string JsonReport(const RunResult& result) {
  nlohmann::ordered_json json = {{"config", result.config_file},
                                 {"ledger", {{"balanced", result.imbalances.empty()}, {"faults", result.imbalances}}},
                                 {"leaks", result.leaks}};
  json.update(SnapshotJson(result.snapshot));
  json["page_memory"]["planned_bytes"] = result.planned_page_bytes;
  json["page_memory"]["trimmed_bytes"] = result.trimmed_bytes;
  // A capture's name or damage may hold bytes that are no UTF-8: replaced rather than thrown about.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace halfpage
