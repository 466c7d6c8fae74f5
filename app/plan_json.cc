#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "app/plan_report.h"

namespace halfpage {
namespace {

using Json = nlohmann::ordered_json;

Json SocketJson(int socket) {
  return socket < 0 ? Json("any") : Json(socket);
}

Json FootprintJson(const PoolFootprint& footprint, uint32_t size) {
  return {{"bytes", footprint.total()},
          {"bytes_per_buffer_real", static_cast<double>(footprint.total()) / size},
          {"object_bytes", footprint.object_bytes},
          {"page_size", footprint.page_bytes},
          {"objects_per_page", footprint.objects_per_page},
          {"pages", footprint.pages},
          {"page_bytes", footprint.buffer_bytes},
          {"cache_bytes", footprint.cache_bytes},
          {"other_bytes", footprint.other_bytes}};
}

Json PoolJson(const PoolPlan& pool) {
  Json json = {{"name", pool.config.name},
               {"socket", SocketJson(pool.config.socket)},
               {"ops", pool.config.ops},
               {"exact", pool.config.page_frag.exact},
               {"size", pool.config.size},
               {"cache", pool.config.cache},
               {"bytes_per_buffer_nominal", pool.nominal_per_buffer()},
               {"bytes_per_buffer_real", pool.real_per_buffer()}};
  json.update(FootprintJson(pool.own, pool.config.size));
  json["page_reason"] = pool.page_reason;
  json["taken_for"] = pool.taken_for;
  json["held_at_once"] = {{"rings", pool.needs.rings},
                          {"caches", pool.needs.caches},
                          {"bursts", pool.needs.bursts},
                          {"buffers_per_frame", pool.needs.segments},
                          {"sum", pool.needs.sum()}};
  json["packing"] = {{"objects_per_page", pool.cliff.objects_per_page},
                     {"largest_data_room", pool.cliff.largest_room},
                     {"next_data_room", pool.cliff.next_room},
                     {"next_objects_per_page", pool.cliff.next_objects}};
  json["stock"] = {{"hugepages", FootprintJson(pool.stock_hugepages, pool.config.size)},
                   {"no_hugepages", FootprintJson(pool.stock_small, pool.config.size)}};
  return json;
}

}  // namespace

std::string PlanJson(const MemoryPlan& plan, const std::vector<MemoryLimit>& limits) {
  Json json = {{"config", plan.file}, {"hugepages", plan.terms.hugepages}, {"workers", plan.terms.workers}};
  json["pools"] = Json::array();
  for (const PoolPlan& pool : plan.pools) json["pools"].push_back(PoolJson(pool));
  json["arenas"] = Json::array();
  for (const ArenaFootprint& arena : plan.memory.arenas) {
    Json names = Json::array();
    for (const size_t p : arena.pools) names.push_back(plan.pools[p].config.name);
    json["arenas"].push_back({{"socket", SocketJson(arena.socket)},
                              {"pools", std::move(names)},
                              {"chunks", arena.chunks},
                              {"chunk_bytes", arena.chunk_bytes},
                              {"page_bytes", arena.page_bytes},
                              {"header_bytes", arena.header_bytes},
                              {"free_bytes", arena.home_bytes()},
                              {"other_bytes", arena.other_bytes},
                              {"limit_bytes", plan.terms.arena_limit},
                              {"denied_bytes", arena.denied_bytes}});
  }
  json["sockets"] = Json::array();
  for (const SocketPlan& socket : plan.sockets) {
    json["sockets"].push_back(
        {{"socket", SocketJson(socket.socket)}, {"pools", socket.pools}, {"bytes", socket.bytes}});
  }
  json["ring_bytes"] = plan.ring_bytes;
  json["needed_bytes"] = plan.needed;
  json["needed_one_pool_at_a_time_bytes"] = plan.one_at_a_time;
  json["stock_hugepages_bytes"] = plan.stock_hugepages;
  json["stock_no_hugepages_bytes"] = plan.stock_small;
  json["limits"] = Json::array();
  bool fits = true;
  const auto add = [&](const std::string& name, uint64_t bytes, const std::string& source) {
    fits = fits && plan.needed <= bytes;
    json["limits"].push_back({{"name", name}, {"bytes", bytes}, {"source", source}, {"fits", plan.needed <= bytes}});
  };
  if (plan.eal_memory != 0) add("eal.memory less what EAL takes itself", plan.available, "eal.memory");
  for (const MemoryLimit& limit : limits) add(limit.name, limit.bytes, limit.source);
  json["fits"] = fits;
  if (plan.overrun.has_value()) {
    json["overrun"] = {{"pool", plan.pools[plan.overrun->pool].config.name}, {"largest_size", plan.overrun->largest}};
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace halfpage
