// page_frag linked into a program, which then may read its statistics and give it settings of its own.
//
//   g++ -std=c++17 linked.cc -o linked $(pkg-config --cflags --libs halfpage-page-frag-static)
//   ./linked --no-huge -m 128 --no-pci
//
// With halfpage-page-frag in place of halfpage-page-frag-static the program needs the shared library when it runs.
// Exit code: 0, or 1 where something fails.
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include <cstdio>

#include "mempool/page_frag.h"
#include "mempool/pktmbuf_pool.h"

int main(int argc, char** argv) {
  // A linker takes out of a static library only what somebody asks for, and nobody asks for a constructor. So ask:
  // without this call there is no handler "page_frag". It may come before rte_eal_init() or after it, and again.
  if (page_frag_register() < 0) {
    std::fprintf(stderr, "DPDK has no place left for another mempool handler\n");
    return 1;
  }
  if (rte_eal_init(argc, argv) < 0) {
    std::fprintf(stderr, "EAL does not start: %s\n", rte_strerror(rte_errno));
    return 1;
  }
  {
    halfpage::PktmbufPoolConfig config;
    config.name = "packets";
    config.size = 1024;
    config.data_room = 1856;  // two buffers a page of 4 KiB
    config.cache = 0;
    config.page_frag.page_size = 4096;
    auto pool = halfpage::PktmbufPool::Create(config);
    if (!pool.ok()) {
      std::fprintf(stderr, "no pool: %s\n", pool.status().ToString().c_str());
      rte_eal_cleanup();
      return 1;
    }
    rte_mbuf* burst[32];
    if (rte_pktmbuf_alloc_bulk(pool->get(), burst, 32) != 0) return 1;
    auto stats = halfpage::ReadPageFragStats(pool->get());
    std::printf("buffers: %u on %u pages of %u bytes\n", static_cast<unsigned>(stats->objects_out),
                static_cast<unsigned>(stats->pages_inflight), stats->page_size);
    rte_pktmbuf_free_bulk(burst, 32);
    pool->Flush();
    stats = halfpage::ReadPageFragStats(pool->get());
    std::printf("pages in flight: %u\n", static_cast<unsigned>(stats->pages_inflight));
  }  // the pool goes before EAL does
  return rte_eal_cleanup() != 0;
}
