// Linked into the shared library only: loading it (EAL's -d, or a link against it) enters the handler.
#include "mempool/page_frag.h"

__attribute__((constructor)) static void RegisterOnLoad() {
  page_frag_register();
}
