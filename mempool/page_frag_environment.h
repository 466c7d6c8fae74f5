// The PAGE_FRAG_* environment variables, for applications that know nothing of the handler.
#pragma once

#include <cstdint>

#include "mempool/page_frag_settings.h"

namespace halfpage {

// Overrides `settings` by PAGE_FRAG_PAGE_SIZE (bytes), PAGE_FRAG_RECYCLE (lifo, ring, off),
// PAGE_FRAG_ROTATION (pages), PAGE_FRAG_COLOUR and PAGE_FRAG_DEBUG (0, 1).
// Gives null, or what is wrong with a value; `settings` then holds what was read before it. Not while another thread
// changes the environment.
const char* ReadPageFragEnvironment(PageFragSettings* settings);

// Likewise PAGE_FRAG_LIMIT into `bytes`, which stays as it is where the variable is not set.
const char* ReadPageFragLimit(uint64_t* bytes);

}  // namespace halfpage
