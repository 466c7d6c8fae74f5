/*
 * page_frag as a plug-in: nothing of it is in this program. EAL loads it, the pool names it.
 *
 *   gcc plugin.c -o plugin $(pkg-config --cflags --libs libdpdk)
 *   ./plugin --no-huge -m 128 --no-pci -d librte_mempool_page_frag.so
 *
 * Exit code: 0, or 1 where EAL does not start or does not know the handler.
 */
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <stdio.h>

#define BUFFERS 1024

int main(int argc, char** argv) {
  if (rte_eal_init(argc, argv) < 0) {
    fprintf(stderr, "EAL does not start: %s\n", rte_strerror(rte_errno));
    return 1;
  }
  /* The one line that is different: ..._by_ops(), and the handler's name at the end. Without it, EAL's option
   * --mbuf-pool-ops-name=page_frag does the same for every rte_pktmbuf_pool_create(). */
  struct rte_mempool* pool = rte_pktmbuf_pool_create_by_ops("packets", BUFFERS, 32 /* cache */, 0 /* private bytes */,
                                                            RTE_MBUF_DEFAULT_BUF_SIZE, rte_socket_id(), "page_frag");
  if (pool == NULL) {
    fprintf(stderr, "no pool: %s (is the library loaded? -d librte_mempool_page_frag.so)\n", rte_strerror(rte_errno));
    rte_eal_cleanup();
    return 1;
  }
  /* From here on everything is as with any other pool. */
  struct rte_mbuf* burst[32];
  unsigned packets = 0;
  for (int round = 0; round < 1000; ++round) {
    if (rte_pktmbuf_alloc_bulk(pool, burst, 32) != 0) break;
    for (int i = 0; i < 32; ++i) packets += rte_pktmbuf_append(burst[i], 64) != NULL;
    rte_pktmbuf_free_bulk(burst, 32);
  }
  printf("handler: %s\n", rte_mempool_get_ops(pool->ops_index)->name);
  printf("packets: %u\n", packets);
  printf("in use: %u\n", rte_mempool_in_use_count(pool));
  rte_mempool_free(pool);
  return rte_eal_cleanup() != 0;
}
