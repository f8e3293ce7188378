/* SPDX-License-Identifier: Apache-2.0 */
#include "services/reserve/store.h"

void reserve_store_run(struct reserve_store *store, const struct reserve_call *call,
                       reserve_on_answer *on_answer, void *context, uint64_t token)
{
    if (store->run(store, call, on_answer, context, token) != 0) {
        const struct reserve_answer nothing = {.ending = RESERVE_NOT_RUN};
        on_answer(context, token, &nothing);
    }
}
