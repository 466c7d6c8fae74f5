// DPDK's own dumps, which write to a stream.
#include <rte_devargs.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_mempool.h>
#include <rte_memzone.h>
#include <rte_ring.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "app/prompt/commands.h"

namespace halfpage {

absl::Status Dump(Session& session, const Words& words) {
  char* text = nullptr;
  size_t size = 0;
  FILE* stream = open_memstream(&text, &size);
  if (stream == nullptr) return absl::ResourceExhaustedError("no memory for the dump");
  const std::string& what = words[0];
  absl::Status status;
  if (what == "dump_mempool" && words.size() > 1) {
    rte_mempool* pool = rte_mempool_lookup(words[1].c_str());
    // Pools of mbufs are created as they are named.
    if (pool == nullptr) {
      status = absl::NotFoundError(absl::StrCat("there is no mempool ", words[1], "; dump_mempool lists them"));
    } else {
      rte_mempool_dump(stream, pool);
    }
  } else if (what == "dump_mempool") {
    rte_mempool_list_dump(stream);
  } else if (what == "dump_physmem") {
    rte_dump_physmem_layout(stream);
  } else if (what == "dump_memzone") {
    rte_memzone_dump(stream);
  } else if (what == "dump_socket_mem") {
    rte_malloc_dump_stats(stream, nullptr);
  } else if (what == "dump_ring") {
    rte_ring_list_dump(stream);
  } else if (what == "dump_lcores") {
    rte_lcore_dump(stream);
  } else if (what == "dump_devargs") {
    rte_devargs_dump(stream);
  } else {
    rte_log_dump(stream);
  }
  std::fclose(stream);
  session.out.append(text, size);
  std::free(text);
  return status;
}

}  // namespace halfpage
